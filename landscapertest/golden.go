// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// CompareGolden fails the test if got differs from the content of the file at path. If update is true, CompareGolden
// writes got to the file instead. Usually, update is a flag of the test:
//
//	var update = flag.Bool("update", false, "rewrite the golden files")
func CompareGolden(t testing.TB, path, got string, update bool) {
	t.Helper()
	if update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatalf("make directory of golden file: %v", err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatalf("write golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path) //nolint:gosec // the test chooses the path
	if err != nil {
		t.Fatalf("read golden file (run the test with -update to write it): %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got, run with -update to accept):\n%s", path, diff)
	}
}
