// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// recording describes how a mutant is created from the changes in the work tree.
type recording struct {
	name  string
	fault string   // description of the fault; if it is empty, an existing mutant keeps its own
	tests string   // arguments of go test; if it is empty, an existing mutant keeps its own
	paths []string // paths of the changes; if there are none, all Go files
}

// record writes the unstaged changes to the entry of a mutant, and returns the mutant. It returns an error if nothing
// changed, or if a new mutant has no description or no tests.
func record(ctx context.Context, root, dir string, r recording) (mutant, error) {
	paths := r.paths
	if len(paths) == 0 {
		paths = []string{"*.go"}
	}
	git := exec.CommandContext(ctx, "git", append([]string{"diff", "--no-color", "--no-ext-diff", "--"}, paths...)...)
	git.Dir = root
	diff, err := git.Output()
	if err != nil {
		return mutant{}, fmt.Errorf("git diff: %w", err)
	}
	fault, tests := r.fault, r.tests
	if old, err := load(dir, regexp.MustCompile("^"+regexp.QuoteMeta(r.name)+"$")); err == nil {
		fault, tests = cmp.Or(fault, old[0].fault), cmp.Or(tests, old[0].arguments)
	}
	m, err := parse(r.name, entry(fault, tests, string(diff)))
	if err != nil {
		return mutant{}, fmt.Errorf("mutant %s: %w", r.name, err)
	}
	return m, store(dir, m)
}

// ofGit matches the lines of a diff that git apply does not need.
var ofGit = regexp.MustCompile(`(?m)^(?:diff --git|index) .*\n`)

// entry returns the text of a mutant in an archive.
func entry(fault, tests, diff string) []byte {
	var b strings.Builder
	if fault != "" {
		fmt.Fprintf(&b, "# %s\n", fault)
	}
	if tests != "" {
		fmt.Fprintf(&b, "# tests: %s\n", tests)
	}
	b.WriteString(ofGit.ReplaceAllString(diff, ""))
	return []byte(b.String())
}
