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
	fault string   // description of the fault; if empty, an existing mutant keeps its description
	tests string   // arguments of go test; if empty, an existing mutant keeps its arguments
	paths []string // paths whose changes are recorded; if empty, the changes of all Go files are recorded
}

// record writes the unstaged changes to the entry of a mutant, and returns the mutant. It returns an error if there
// are no changes, or if a new mutant has no description or no tests.
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

// ofGit matches lines that git diff writes but git apply does not need.
var ofGit = regexp.MustCompile(`(?m)^(?:diff --git|index) .*\n`)

// entry returns the content of a mutant's entry in an archive.
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
