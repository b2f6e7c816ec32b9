// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
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
	diff, err := git(ctx, root, append([]string{"diff", "--no-color", "--no-ext-diff", "-U0", "--"}, paths...)...)
	if err != nil {
		return mutant{}, err
	}
	m := mutant{name: r.name, fault: r.fault, arguments: r.tests}
	if old, err := load(dir, regexp.MustCompile("^"+regexp.QuoteMeta(r.name)+"$")); err == nil {
		m.fault, m.arguments = cmp.Or(m.fault, old[0].fault), cmp.Or(m.arguments, old[0].arguments)
	}
	for _, h := range parseHunks(string(diff)) {
		source, err := git(ctx, root, "show", ":"+h.file)
		if err != nil {
			return mutant{}, err
		}
		e, err := h.toEdit(source)
		if err != nil {
			return mutant{}, fmt.Errorf("mutant %s: %s: %w", r.name, h.file, err)
		}
		m.edits = append(m.edits, e)
	}
	if m, err = parse(r.name, []byte(m.String())); err != nil {
		return mutant{}, fmt.Errorf("mutant %s: %w", r.name, err)
	}
	return m, store(dir, m)
}

func git(ctx context.Context, root string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out, nil
}
