// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"io/fs"
	"testing"
	"testing/fstest"

	deployitems "github.com/deployerkit/deployerkit/examples/deploy-items"
	installations "github.com/deployerkit/deployerkit/examples/landscaper"
)

func TestExamplesBelongToTheDemoNamespace(t *testing.T) {
	for _, files := range []fs.FS{deployitems.Files, installations.Files} {
		objects, err := decode(files, "*.yaml")
		if err != nil || len(objects) < 2 {
			t.Errorf("decode: got %v, %v, want the objects of all examples", objects, err)
		}
		for _, obj := range objects {
			if obj.GetKind() != "Namespace" && obj.GetNamespace() != namespace {
				t.Errorf("%s %s is in namespace %q, want %q", obj.GetKind(), obj.GetName(), obj.GetNamespace(), namespace)
			}
		}
	}
}

func TestEditsMatchTheExamples(t *testing.T) {
	for _, tc := range []struct {
		files fs.FS
		name  string
		edit  edit
	}{
		{deployitems.Files, "logging.yaml", withoutDashboards},
		{installations.Files, "database.yaml", newHost},
		{installations.Files, "database.yaml", withoutMetrics},
		{installations.Files, "app.yaml", unquotedNumber},
		{installations.Files, "app.yaml", moreConnections},
	} {
		if objects, err := decode(tc.files, tc.name, tc.edit); err != nil || len(objects) != 1 {
			t.Errorf("decode(%s) with %q: got %v, %v, want one object", tc.name, tc.edit.old, objects, err)
		}
	}
}

func TestDecode(t *testing.T) {
	files := fstest.MapFS{
		"broken.yaml": {Data: []byte("a: [")},
		"empty.yaml":  {Data: []byte("# nothing\n")},
		"valid.yaml":  {Data: []byte("kind: A\nx: 1\ny: 1\n")},
	}
	for name, tc := range map[string]struct {
		pattern string
		edits   []edit
		want    any // value of the field x of the only object
		objects int
		fails   bool
	}{
		"a broken file is an error":                       {pattern: "broken.yaml", fails: true},
		"a file with only a comment contains no object":   {pattern: "empty.yaml"},
		"edits are applied one after the other":           {pattern: "valid.yaml", edits: []edit{{"x: 1", "x: new"}, {"x: new", "x: newer"}}, objects: 1, want: "newer"},
		"an edit of a text that is missing is an error":   {pattern: "valid.yaml", edits: []edit{{"z", ""}}, fails: true},
		"an edit of a text that occurs twice is an error": {pattern: "valid.yaml", edits: []edit{{": 1", ""}}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := decode(files, tc.pattern, tc.edits...)
			if (err != nil) != tc.fails || len(objects) != tc.objects {
				t.Fatalf("decode: got %v, %v, want %d objects and an error: %t", objects, err, tc.objects, tc.fails)
			}
			if tc.objects == 1 && objects[0].Object["x"] != tc.want {
				t.Errorf("decode: x is %v, want %v", objects[0].Object["x"], tc.want)
			}
		})
	}
}
