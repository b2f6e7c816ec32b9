// SPDX-License-Identifier: Apache-2.0

// Package scaffold_test builds, tests and runs the repositories that `deployerkit init` creates, as their users would.
package scaffold_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/scaffold"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
)

func TestRepositories(t *testing.T) {
	assets, err := controlplane.FindAssets(t.Context(), controlplane.AssetsOptions{ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	programs, err := landscaper.FindPrograms(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	linter, err := filepath.Abs("../../../hack/tools/bin/golangci-lint")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(linter); err != nil {
		run(t, os.Environ(), "../../..", "make", "hack/tools/bin/golangci-lint")
	}
	env := append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "DEPLOYERKIT_LANDSCAPER="+programs, "GOFLAGS=-mod=readonly", "GOWORK=off")
	for style, license := range map[string]string{"plain": "apache-2.0", "declarative": "mit", "graph": "none"} {
		t.Run(style, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "repository")
			if err := runInit(t, dir, style, license); err != nil {
				t.Fatal(err)
			}
			before := readFiles(t, dir)
			if err := runInit(t, dir, style, license); !errors.Is(err, scaffold.ErrUsage) {
				t.Errorf("a second init: got %v, want an error of usage", err)
			}
			if diff := cmp.Diff(before, readFiles(t, dir)); diff != "" {
				t.Errorf("a second init changed files (-before, +after):\n%s", diff)
			}
			if out := run(t, env, dir, "gofmt", "-l", "."); out != "" {
				t.Errorf("not formatted: %s", out)
			}
			run(t, env, dir, "go", "mod", "tidy", "-diff")
			run(t, env, dir, linter, "run", "--allow-parallel-runners")
			run(t, env, dir, "make", "test")
			checkShort(t, env, dir)
			if style == "plain" { // the others export nothing
				checkRenamedExports(t, env, dir)
			}
			run(t, env, dir, "make", "run", "ARGS=--once")
			if style == "plain" { // the Makefiles of the styles differ only in their flags
				checkRunEnds(t, env, dir, []string{
					"run", "--item", "examples/deployitem.yaml", "--", "bin/my-password-deployer",
					"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--history-bind-address=0",
				})
			}
			run(t, env, dir, "make", "run-landscaper", "ARGS=--once")
		})
	}
}

// checkShort checks the target of the Makefile for unit tests, after a run of all tests.
func checkShort(t *testing.T, env []string, dir string) {
	t.Helper()
	t.Run("make test-short starts no control plane and ends within 10 seconds [F90]", func(t *testing.T) {
		run(t, env, dir, "make", "test-short")
		run(t, env, dir, "go", "test", "-c", "-o", "short.test", ".") // other tests compete for the compiler
		began := time.Now()
		out := run(t, append(env, "KUBEBUILDER_ASSETS=/nowhere"), dir, "./short.test", "-test.short", "-test.v")
		if took := time.Since(began); took > testtime.ScaleTimeout(10*time.Second) {
			t.Errorf("the tests took %s", took)
		}
		for _, want := range []string{"--- SKIP: TestProgram", "--- SKIP: TestConformance", "--- PASS: TestInstallation"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in the output:\n%s", want, out)
			}
		}
	})
}

// checkRenamedExports renames an export in one file after the other and requires that TestInstallation fails.
func checkRenamedExports(t *testing.T, env []string, dir string) {
	t.Helper()
	for _, test := range []struct{ name, file, old, renamed string }{
		{"the code", "deployer.go", `"greeting": cfg`, `"salute": cfg`},
		{"the export template", "examples/installation.yaml", `").greeting`, `").salute`},
		{"the blueprint", "examples/installation.yaml", "{name: greeting, type", "{name: salute, type"},
		{"the Installation", "examples/installation.yaml", "- name: greeting", "- name: salute"},
	} {
		t.Run("a renamed export in "+test.name+" fails the test of the Installation [F90]", func(t *testing.T) {
			path := filepath.Join(dir, test.file)
			before, err := os.ReadFile(path)
			if err != nil || strings.Count(string(before), test.old) != 1 {
				t.Fatalf("want %q once in %s, %v", test.old, test.file, err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(before), test.old, test.renamed, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-short", "-run=^TestInstallation$", ".")
			cmd.Dir, cmd.Env = dir, env
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--- FAIL: TestInstallation") {
				t.Errorf("got %v, want a failure of TestInstallation:\n%s", err, out)
			}
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// runInit runs `deployerkit init`.
func runInit(t *testing.T, dir, style, license string) error {
	t.Helper()
	var out bytes.Buffer
	cmd := scaffold.NewCommand()
	cmd.SilenceErrors = true
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs([]string{
		"example.org/my-password", "--module=example.org/password-deployer", "--dir=" + dir, "--style=" + style, "--license=" + license,
	})
	err := cmd.ExecuteContext(t.Context())
	t.Logf("%s", &out)
	return err
}

// run runs a command and returns its output.
func run(t *testing.T, env []string, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// readFiles returns the content of all files in a directory. The keys are the paths of the files.
func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
