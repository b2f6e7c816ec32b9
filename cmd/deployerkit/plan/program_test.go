// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/targets"
)

func TestErrToDoHasItsOwnExitCode(t *testing.T) {
	var coder interface{ ExitCode() int }
	if !errors.As(plan.ErrToDo, &coder) || coder.ExitCode() != 2 {
		t.Errorf("[F31] got %v, want an error with the exit code 2", plan.ErrToDo)
	}
}

func TestDeclarativeDeployerImplementsPlanner(t *testing.T) {
	options := declarative.Options{
		Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}},
		Targets:  targets.Policy{AllowHTTP: true}, TargetLimits: targets.Limits{Requests: 7},
	}
	planner, ok := declarative.New(nil, options).(plan.Planner)
	if !ok {
		t.Fatal("[F31] it is none")
	}
	policy, limits := planner.TargetOptions()
	if diff := cmp.Diff(options.Targets, policy) + cmp.Diff(options.TargetLimits, limits); diff != "" {
		t.Errorf("[F31] a plan opens Targets with other restrictions than the deployer:\n%s", diff)
	}
	if _, err := planner.Plan(t.Context(), nil, nil, &lsv1alpha1.DeployItem{}); err == nil || err.Error() != "handler: required" {
		t.Errorf("error = %v, want %q", err, "handler: required")
	}
}

func TestPlanCommandOfDeployers(t *testing.T) {
	handler := declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		return declarative.NewBuilder(nil).Build()
	})
	var color string
	colored := func(fs *pflag.FlagSet) {
		fs.StringVarP(&color, "color", "n", "", "a color; its short form is taken by the command")
		fs.String("filename", "", "taken by the command, too")
	}
	newArgs := func() (deployerlib.DeployerArgs, error) {
		if color != "blue" {
			return deployerlib.DeployerArgs{}, errors.New("want blue")
		}
		return declarative.Args("test", "example.com/test", handler, declarative.Options{}), nil
	}
	for name, tc := range map[string]struct {
		program deployermain.Program
		args    []string
		want    string
	}{
		"neither a name nor a file":                        {deployermain.Program{Args: mock.Args(nil)}, nil, "give either the name"},
		"a deployer that cannot plan [F31]":                {deployermain.Program{Args: mock.Args(nil)}, []string{"web"}, "does not support plan"},
		"the flags of the program [F31]":                   {deployermain.Program{Flags: colored, NewArgs: newArgs}, []string{"web", "--color=red"}, "want blue"},
		"the kubeconfig is read after all flags are valid": {deployermain.Program{Flags: colored, NewArgs: newArgs}, []string{"web", "--color=blue", "--kubeconfig=missing"}, "load kubeconfig"},
		"the short form of a flag belongs to the command":  {deployermain.Program{Flags: colored, NewArgs: newArgs}, []string{"web", "-n=blue"}, "want blue"},
	} {
		t.Run(name, func(t *testing.T) {
			color = ""
			cmd := deployermain.Command(plan.With(tc.program))
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			cmd.SetArgs(append([]string{"plan"}, tc.args...))
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWithSettings(t *testing.T) {
	t.Run("the settings are read after the flags were parsed [F31]", func(t *testing.T) {
		var color string
		program := deployermain.Program{Args: mock.Args(nil), Flags: func(fs *pflag.FlagSet) { fs.StringVar(&color, "color", "", "a color") }}
		cmd := deployermain.Command(plan.WithSettings(program, func() (plan.Settings, error) { return plan.Settings{}, errors.New("not " + color) }))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs([]string{"plan", "web", "--color=red"})
		if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != "not red" {
			t.Errorf("error = %v, want %q", err, "not red")
		}
	})
}
