// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// answers is a tester that returns fixed verdicts: `sound` for the unchanged code, and `mutated` for a mutant.
type answers struct {
	sound, mutated testResult
	err            error
}

func (a answers) run(_ context.Context, args ...string) (testResult, error) {
	if !strings.HasPrefix(args[0], "-overlay=") {
		return a.sound, nil
	}
	if _, err := os.Stat(strings.TrimPrefix(args[0], "-overlay=")); err != nil {
		return testResult{}, err
	}
	return a.mutated, a.err
}

func TestTryAll(t *testing.T) {
	good := testResult{passed: 3}
	cases := map[string]struct {
		tests answers
		code  string // the content of the file that the mutant changes
		want  string // a part of the output or of the error
		ok    bool
	}{
		"caught":           {answers{good, testResult{tests: []string{"TestA"}}, nil}, "const a = 1\n", "1 mutants: 1 caught, 0 survived, 0 broken", true},
		"survives":         {answers{good, good, nil}, "const a = 1\n", "[1/1] SURVIVED  pkg-m", false},
		"prints the fault": {answers{good, good, nil}, "const a = 1\n", "One is two.\n          go test ./pkg -run TestA\n", false},
		"does not apply":   {answers{good, good, nil}, "const a = 3\n", "1 mutants: 0 caught, 0 survived, 1 broken", false},
		"does not build":   {answers{good, testResult{unbuilt: "a.go:3: no"}, nil}, "const a = 1\n", "does not build: a.go:3: no", false},
		"runs no test":     {answers{good, testResult{}, nil}, "const a = 1\n", "BROKEN    pkg-m", false},
		"cannot run":       {answers{good, testResult{}, errors.New("no go")}, "const a = 1\n", "no go", false},
		"fails anyway":     {answers{testResult{tests: []string{"TestA"}}, good, nil}, "const a = 1\n", "the tests fail without a mutant: TestA", false},
		"never builds":     {answers{testResult{unbuilt: "a.go:3: no"}, good, nil}, "const a = 1\n", "the tests do not build without a mutant: a.go:3: no", false},
		"has no tests":     {answers{testResult{}, good, nil}, "const a = 1\n", "there are no tests", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from := t.TempDir()
			if err := os.MkdirAll(filepath.Join(from, "pkg"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(from, "pkg", "a.go"), []byte("package pkg\n\n"+tc.code), 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := parse("pkg-m", []byte("# One is two.\n# tests: ./pkg -run TestA\n"+change))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			r := &runner{root: from, scratch: t.TempDir(), out: &out, tests: tc.tests}
			ok, err := r.tryAll(t.Context(), []mutant{m})
			if err != nil {
				out.WriteString(err.Error())
			}
			if ok != tc.ok || !strings.Contains(out.String(), tc.want) {
				t.Errorf("got %t and %q, want %t and %q", ok, out.String(), tc.ok, tc.want)
			}
		})
	}
}
