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

// mutant is one deliberate fault in the code.
type mutant struct {
	name      string   // name of the entry in the archive
	fault     string   // description of the fault, one sentence
	tests     []string // arguments of go test
	arguments string   // the same arguments as a single string
	patch     []byte
	files     []string // files that the patch changes, relative to the root
}

// changedFile matches the names of the changed files in a unified diff.
var changedFile = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`)

// parse parses an entry of an archive.
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
		return m, errors.New("the line that describes the fault is missing")
	case len(m.packages()) == 0:
		return m, errors.New(`the line "# tests: ./package" is missing`)
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

// packages returns the packages whose tests are run.
func (m mutant) packages() []string {
	return slices.DeleteFunc(slices.Clone(m.tests), func(arg string) bool { return !strings.HasPrefix(arg, "./") })
}

// apply copies the files that the patch changes from `root` to `dir`, and applies the patch to the copies. It returns
// an error if a file is missing or if the patch no longer applies.
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
	git := exec.CommandContext(ctx, "git", "apply", "-C1", "-") // -C1 requires only one line of context to match, so that the other lines may change
	// Git must not find a repository that contains the directory, because it would then interpret the paths relative to
	// the root of that repository.
	git.Dir, git.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	git.Stdin = bytes.NewReader(m.patch)
	if out, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("does not apply: %w: %s", err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}
