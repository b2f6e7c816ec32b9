// SPDX-License-Identifier: Apache-2.0

package deployermain_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/spf13/pflag"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
)

// greeter is a deployer that does nothing.
type greeter struct {
	deployerlib.Base
	greeting string
}

func (greeter) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (greeter) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// Run is the whole main function of most deployers.
func ExampleRun() {
	main := func() {
		deployermain.Run(deployermain.Program{
			Short: "Greets",
			Args:  deployerlib.DeployerArgs{Name: "greeter", Type: "example.org/greeting", Deployer: greeter{}},
		})
	}
	_ = main
}

// A program can have flags of its own. NewArgs is called after the flags have been parsed.
func ExampleProgram() {
	var greeting string
	program := deployermain.Program{
		Name:    "greeter",
		Short:   "Greets",
		Version: "v1.2.3",
		Flags:   func(fs *pflag.FlagSet) { fs.StringVar(&greeting, "greeting", "hello", "what to say") },
		NewArgs: func() (deployerlib.DeployerArgs, error) {
			return deployerlib.DeployerArgs{Name: "greeter", Type: "example.org/greeting", Deployer: greeter{greeting: greeting}}, nil
		},
	}
	cmd := deployermain.Command(program)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	err := cmd.Execute()
	fmt.Println(strings.TrimSpace(out.String()), cmd.Flag("greeting").Usage, err)
	// Output:
	// greeter version v1.2.3 what to say <nil>
}
