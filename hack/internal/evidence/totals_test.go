// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadTotals(t *testing.T) {
	root, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(path string, events ...[3]string) {
		t.Helper()
		var b strings.Builder
		for _, e := range events {
			fmt.Fprintf(&b, "{\"Action\":%q,\"Package\":%q,\"Test\":%q}\n", e[0], module+e[1], e[2])
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(first, "a.json"), [3]string{"pass", "units", "TestA/x"}, [3]string{"pass", "units", "TestA"},
		[3]string{"fail", "units", "TestB"}, [3]string{"skip", "units", "TestC"}, [3]string{"fail", "units", ""})
	write(filepath.Join(second, "b.json"), [3]string{"pass", "units", "TestA/x"}, [3]string{"pass", "units", "TestA"},
		[3]string{"pass", "units", "TestB"}, [3]string{"pass", "units", "TestC"}, [3]string{"skip", "units", "TestD"}, [3]string{"pass", "units", ""},
		[3]string{"fail", "unbuilt", ""}, [3]string{"skip", "empty", ""})
	write(filepath.Join(second, "c.json"), [3]string{"fail", "suite", "TestSuite"}, [3]string{"fail", "suite", ""})
	specs := `[{"SpecReports":[{"LeafNodeType":"It","LeafNodeText":"ends","State":"passed"},
		{"LeafNodeType":"It","LeafNodeText":"breaks","State":"panicked"},{"LeafNodeType":"It","LeafNodeText":"waits","State":"pending"}]}]`
	if err := os.Mkdir(filepath.Join(root, "suite"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "suite", GinkgoReport), []byte(specs), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTotals(root, first, second, filepath.Join(root, "missing"))
	if err != nil {
		t.Fatal(err)
	}
	want := Totals{Passed: 3, Failed: 4, Skipped: 2, Failures: []string{
		"suite: TestSuite", "suite: breaks", "unbuilt: the package failed without a failed test", "units: TestB",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text := got.String(); text != "3 passed, 4 failed, 2 skipped" {
		t.Errorf("String() = %q, want 3 passed, 4 failed, 2 skipped", text)
	}
}
