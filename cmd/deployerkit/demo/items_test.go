// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"io/fs"
	"testing"
	"testing/fstest"

	deployitems "github.com/deployerkit/deployerkit/examples/deploy-items"
	installations "github.com/deployerkit/deployerkit/examples/landscaper"
)

func TestManifestsOfTheExamples(t *testing.T) {
	for _, files := range []fs.FS{deployitems.Files, installations.Files} {
		testManifests(t, files)
	}
}

func testManifests(t *testing.T, files fs.FS) {
	t.Helper()
	names, err := fs.Glob(files, "*.yaml")
	if err != nil || len(names) < 2 {
		t.Fatalf("want the manifests of all examples, got %q, %v", names, err)
	}
	for _, name := range names {
		objects, err := decode(files, name)
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

func TestDecodeEdits(t *testing.T) {
	files := fstest.MapFS{"a.yaml": {Data: []byte("kind: A\nx: 1\ny: 1\n")}}
	objects, err := decode(files, "a.yaml", edit{"x: 1", "x: new"}, edit{"x: new", "x: newer"})
	if err != nil || objects[0].Object["x"] != "newer" {
		t.Errorf("decode: want x: newer, got %v, %v", objects, err)
	}
	for _, old := range []string{"z", ": 1"} {
		if _, err := decode(files, "a.yaml", edit{old, ""}); err == nil {
			t.Errorf("edit of %q, which is not there once: want an error", old)
		}
	}
}
