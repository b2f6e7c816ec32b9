// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/run"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/scaffold"
)

func TestGetExitCode(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"success":                    {want: 0},
		"pending changes of a plan":  {err: fmt.Errorf("plan: %w", plan.ErrToDo), want: 2},
		"failed conformance checks":  {err: conformance.ErrFailed, want: 1},
		"wrong usage of conformance": {err: fmt.Errorf("conformance: %w", conformance.ErrUsage), want: 2},
		"wrong usage of init":        {err: fmt.Errorf("init: %w", scaffold.ErrUsage), want: 2},
		"wrong usage of run":         {err: fmt.Errorf("run: %w", run.ErrUsage), want: 2},
		"another error":              {err: errors.New("boom"), want: 1},
	} {
		if got := getExitCode(tc.err); got != tc.want {
			t.Errorf("%s: exitCode(%v): want %d, got %d", name, tc.err, tc.want, got)
		}
	}
}

func TestOutputEscapesControlCharacters(t *testing.T) {
	for _, name := range []string{"plan", "explain", "tree", "conformance", "run"} {
		t.Run(name+" escapes control characters [F12]", func(t *testing.T) {
			var out, failed bytes.Buffer
			root := newRootCommand(&out, &failed)
			cmd, _, err := root.Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(cmd.OutOrStdout(), "a\u202eb")
			fmt.Fprint(cmd.ErrOrStderr(), "a\u202eb")
			root.SetArgs([]string{name, "--a\u202eb"})
			if err := root.Execute(); err == nil {
				t.Error("an unknown flag is accepted")
			}
			if out.String() != `a\u202eb` || bytes.ContainsRune(failed.Bytes(), '\u202e') || bytes.Count(failed.Bytes(), []byte(`a\u202eb`)) < 2 {
				t.Errorf("output %q, errors %q", out.String(), failed.String())
			}
		})
	}
}

func TestPlugin(t *testing.T) {
	for program, want := range map[string]bool{"deployerkit": false, "/usr/bin/kubectl-deployer": true, "bin/kubectl-deployer.exe": true, "kubectl-deployer/deployerkit": false} {
		if got := isPlugin(program); got != want {
			t.Errorf("isPlugin(%q): want %t, got %t", program, want, got)
		}
	}
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := newPluginCommand(&out, &out)
		root.SetArgs(args)
		err := root.Execute()
		return out.String(), err
	}
	t.Run("the plugin of kubectl has the commands explain, tree and plan, and completion [V10]", func(t *testing.T) {
		out, err := run("--help")
		for _, want := range []string{"kubectl deployer", "explain", "tree", "plan", "completion"} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("want %q in the help, got %v: %s", want, err, out)
			}
		}
		if strings.Contains(out, "conformance") {
			t.Errorf("the help of the plugin has other commands: %s", out)
		}
		if out, err := run("__complete", "ex"); err != nil || !strings.Contains(out, "explain") {
			t.Errorf("completion: %v, %s", err, out)
		}
	})
	t.Run("the plugin of kubectl has the kubeconfig flags of kubectl [V10]", func(t *testing.T) {
		for _, name := range []string{"explain", "tree"} {
			cmd, _, err := newPluginCommand(io.Discard, io.Discard).Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			for _, flag := range []string{"kubeconfig", "context", "cluster", "user", "namespace", "token", "as", "server"} {
				if cmd.Flags().Lookup(flag) == nil {
					t.Errorf("%s lacks --%s", name, flag)
				}
			}
		}
	})
}
