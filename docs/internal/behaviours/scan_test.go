// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The IDs of these tests belong to no promise: real ones would count as their tests.
const source = `package x

var cases = map[string]int{"keeps the order [L901]": 1}

// TestAll [Lx902] walks.
func TestAll(t *testing.T) {
	t.Run("a [L903, C904]", nil) // and [L903] again
}

func specs() { It("ends once [C905,C906]", nil) }

// Not a test [L907].
func helper() {}
`

func TestScan(t *testing.T) {
	root := t.TempDir()
	write(t, root, "x/x_test.go", source)
	write(t, root, "x/x.go", `package x; const text = "no test [L908]"`)
	write(t, root, "conformance/suite.go", `package conformance; const title = "holds [L909]"`)
	write(t, root, "testdata/y_test.go", "not Go [L910]")
	write(t, root, ".git/y_test.go", "not Go [L911]")

	got, err := Scan(root)
	if err != nil {
		t.Fatal(err)
	}
	want := Tests{
		"L901":  {{"x/x_test.go", "keeps the order"}},
		"Lx902": {{"x/x_test.go", "TestAll"}},
		"L903":  {{"x/x_test.go", "TestAll"}},
		"C904":  {{"x/x_test.go", "TestAll"}},
		"C905":  {{"x/x_test.go", "ends once"}},
		"C906":  {{"x/x_test.go", "ends once"}},
		"L909":  {{"conformance/suite.go", "holds"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
}

func TestScanBrokenFile(t *testing.T) {
	root := t.TempDir()
	write(t, root, "x_test.go", "not Go")
	if _, err := Scan(root); err == nil {
		t.Error("a file that is not Go was taken")
	}
}

func write(t *testing.T, root, path, text string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
