// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is one deliberate fault.
type mutant struct {
	name  string   // of the file, without .patch
	fault string   // what is broken, in a sentence
	tests []string // arguments of go test
	patch []byte
	files []string // that the patch changes, relative to the root
}

// load reads the patches of a directory whose names match, in the order of their names.
func load(dir string, selected *regexp.Regexp) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, fmt.Errorf("list mutants: %w", err)
	}
	var out []mutant
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".patch")
		if !selected.MatchString(name) {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read mutant: %w", err)
		}
		m, err := parse(name, data)
		if err != nil {
			return nil, fmt.Errorf("mutant %s: %w", name, err)
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no mutant in %s matches %q", dir, selected)
	}
	return out, nil
}

// changedFile finds the files of a unified diff.
var changedFile = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`)

// parse reads the header of a patch.
func parse(name string, patch []byte) (mutant, error) {
	m := mutant{name: name, patch: patch}
	var fault []string
	for line := range strings.Lines(string(patch)) {
		text, isComment := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !isComment {
			break
		}
		if args, isTests := strings.CutPrefix(text, "tests: "); isTests {
			m.tests = words(args)
			continue
		}
		fault = append(fault, text)
	}
	m.fault = strings.Join(fault, " ")
	for _, found := range changedFile.FindAllSubmatch(patch, -1) {
		m.files = append(m.files, string(found[1]))
	}
	switch {
	case m.fault == "":
		return m, errors.New("no line says what is broken")
	case len(m.packages()) == 0:
		return m, errors.New(`no line "# tests: ./package" says what to run`)
	case len(m.files) == 0:
		return m, errors.New("the patch changes nothing")
	case slices.ContainsFunc(m.files, func(f string) bool { return strings.HasSuffix(f, "_test.go") }):
		return m, errors.New("the patch changes a test")
	}
	return m, nil
}

// word is one argument; double quotes hold one with spaces together.
var word = regexp.MustCompile(`"[^"]*"|\S+`)

func words(text string) []string {
	out := word.FindAllString(text, -1)
	for i := range out {
		out[i] = strings.Trim(out[i], `"`)
	}
	return out
}

// packages are those whose tests run.
func (m mutant) packages() []string {
	return slices.DeleteFunc(slices.Clone(m.tests), func(arg string) bool { return !strings.HasPrefix(arg, "./") })
}

// apply makes the changed files in a directory, at the same places. The root is not changed.
// Errors: a file is missing, or the patch does not fit any more.
func (m mutant) apply(ctx context.Context, root, dir string) error {
	for _, file := range m.files {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return err
		}
	}
	git := exec.CommandContext(ctx, "git", "apply", "-C1", "-") // one line of context: the others may change
	// No repository around the directory shall be found: git would take the paths as relative to its root.
	git.Dir, git.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	git.Stdin = bytes.NewReader(m.patch)
	if out, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("does not apply: %w: %s", err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}
