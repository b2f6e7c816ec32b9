// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"io/fs"
	"testing"
	"testing/fstest"

	deployitems "github.com/deployerkit/deployerkit/examples/deploy-items"
)

func TestManifestsOfTheExamples(t *testing.T) {
	names, err := fs.Glob(deployitems.Files, "*.yaml")
	if err != nil || len(names) < 7 {
		t.Fatalf("want the manifests of all examples, got %q, %v", names, err)
	}
	for _, name := range names {
		objects, err := decode(deployitems.Files, name)
		if err != nil || len(objects) == 0 {
			t.Errorf("%s: want objects, got %v, %v", name, objects, err)
		}
		for _, obj := range objects {
			if obj.GetKind() != "Namespace" && obj.GetNamespace() != namespace {
				t.Errorf("%s: %s %s is in namespace %q, want %q", name, obj.GetKind(), obj.GetName(), obj.GetNamespace(), namespace)
			}
		}
	}
}

func TestDecodeNamesTheBrokenManifest(t *testing.T) {
	files := fstest.MapFS{"broken.yaml": {Data: []byte("a: [")}, "empty.yaml": {Data: []byte("# nothing\n")}}
	if _, err := decode(files, "broken.yaml"); err == nil {
		t.Error("decode(broken.yaml): want an error")
	}
	if objects, err := decode(files, "empty.yaml"); err != nil || len(objects) != 0 {
		t.Errorf("decode(empty.yaml): want nothing, got %v, %v", objects, err)
	}
}
