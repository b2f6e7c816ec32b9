// SPDX-License-Identifier: Apache-2.0

// Package gitfiles lists the files of a repository.
package gitfiles

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// List returns the paths, relative to root, of the files that git tracks. If there are patterns, such as "*.go", it
// returns only the files that match one of them.
func List(root string, patterns ...string) ([]string, error) {
	git := exec.Command("git", append([]string{"ls-files", "-z", "--"}, patterns...)...) //nolint:gosec // constants
	git.Dir, git.Stderr = root, os.Stderr
	out, err := git.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}
