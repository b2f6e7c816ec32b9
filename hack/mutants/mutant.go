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

	"github.com/google/shlex"
)

// mutant is one deliberate fault.
type mutant struct {
	name      string   // name of the entry in the archive
	fault     string   // description of the fault, one sentence
	tests     []string // arguments of go test
	arguments string   // the same as one text
	patch     []byte
	files     []string // files that the patch changes, relative to the root
}

// changedFile matches the files of a unified diff.
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
			words, err := shlex.Split(args)
			if err != nil {
				return m, fmt.Errorf("split %q: %w", args, err)
			}
			m.tests, m.arguments = words, args
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
	top, _, _ := strings.Cut(name, "-")
	for _, file := range m.files {
		if !strings.HasPrefix(file, top+"/") {
			return m, fmt.Errorf("the name does not begin with the top directory of %s", file)
		}
	}
	return m, nil
}

// packages returns the packages whose tests run.
func (m mutant) packages() []string {
	return slices.DeleteFunc(slices.Clone(m.tests), func(arg string) bool { return !strings.HasPrefix(arg, "./") })
}

// apply writes the changed files to a directory, at the same paths. It does not change the root. It returns an error if
// a file is missing or the patch no longer applies.
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
	git := exec.CommandContext(ctx, "git", "apply", "-C1", "-") // requires only one line of context, so that the other lines may change
	// Git must not find a repository around the directory, because it would interpret the paths relative to its root.
	git.Dir, git.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	git.Stdin = bytes.NewReader(m.patch)
	if out, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("does not apply: %w: %s", err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}
