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
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/scaffold"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
)

func TestRepositories(t *testing.T) {
	assets, err := controlplane.Assets(t.Context(), controlplane.AssetsOptions{ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	programs, err := landscaper.Programs(t.Context(), nil)
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
			if err := initialize(t, dir, style, license); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)
			if err := initialize(t, dir, style, license); !errors.Is(err, scaffold.ErrUsage) {
				t.Errorf("a second init: got %v, want an error of usage", err)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("a second init changed files (-before, +after):\n%s", diff)
			}
			if out := run(t, env, dir, "gofmt", "-l", "."); out != "" {
				t.Errorf("not formatted: %s", out)
			}
			run(t, env, dir, "go", "mod", "tidy", "-diff")
			run(t, env, dir, linter, "run", "--allow-parallel-runners")
			run(t, env, dir, "make", "test")
			run(t, env, dir, "make", "run", "ARGS=--once")
			if style == "plain" { // the Makefiles of the styles differ only in their flags
				endOfRun(t, env, dir, []string{
					"run", "--item", "examples/deployitem.yaml", "--", "bin/my-password-deployer",
					"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--history-bind-address=0",
				})
			}
			run(t, env, dir, "make", "run-landscaper", "ARGS=--once")
		})
	}
}

// initialize runs `deployerkit init`.
func initialize(t *testing.T, dir, style, license string) error {
	t.Helper()
	var out bytes.Buffer
	cmd := scaffold.Command()
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

// contents returns the content of all files in a directory. The keys are the paths of the files.
func contents(t *testing.T, dir string) map[string]string {
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
