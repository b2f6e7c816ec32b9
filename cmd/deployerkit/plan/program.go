// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/targets"
)

// Planner is implemented by deployers that can plan a reconcile, such as deployers that use package declarative.
type Planner interface {
	// Plan returns the objects that a reconcile of an item would create, change and delete in the target of the item. It
	// writes nothing. If Plan returns an error, the returned plan contains the changes that could be determined.
	Plan(ctx context.Context, ls client.Reader, target client.Client, di *lsv1alpha1.DeployItem) (apply.Plan, error)
	// TargetOptions returns the restrictions that the deployer applies to Targets.
	TargetOptions() (targets.Policy, targets.Limits)
}

// With adds the command `plan` to the program of a deployer that is a [Planner].
//
//	func main() { deployermain.Run(plan.With(program)) }
//
// The command has its own flags and the flags of the program, but does not read the configuration file. The command
// returns an error if the deployer is not a Planner.
func With(p deployermain.Program) deployermain.Program {
	return addCommand(p, func() (*deployer, error) { return newDeployer(p) })
}

// Result is the result of a plan.
type Result interface {
	// String returns the plan as text for users.
	fmt.Stringer
	// CountChanges returns the number of objects that would be created, changed or deleted.
	CountChanges() int
}

// Settings describe how the reconciles of a deployer are planned.
type Settings struct {
	// Type is the type of the deploy items of the deployer.
	Type lsv1alpha1.DeployItemType
	// Targets and TargetLimits are the restrictions that the deployer applies to Targets.
	Targets      targets.Policy
	TargetLimits targets.Limits
	// Plan is like Planner.Plan. It receives a config for the target instead of a client. If it returns an error and
	// could not determine any changes, the Result is nil.
	Plan func(ctx context.Context, ls client.Reader, target *rest.Config, di *lsv1alpha1.DeployItem) (Result, error)
}

// WithSettings is like [With], for deployers whose plan contains more than objects. It calls the function `settings`
// after the flags were parsed.
func WithSettings(p deployermain.Program, settings func() (Settings, error)) deployermain.Program {
	return addCommand(p, func() (*deployer, error) {
		s, err := settings()
		return &deployer{
			itemType: s.Type, policy: s.Targets, limits: s.TargetLimits,
			plan: func(ctx context.Context, ls client.Reader, to *target, di *lsv1alpha1.DeployItem) (Result, error) {
				return s.Plan(ctx, ls, to.config, di)
			},
		}, err
	})
}

// addCommand adds the command `plan` to a program.
func addCommand(p deployermain.Program, newDeployer func() (*deployer, error)) deployermain.Program {
	f := &flags{newDeployer: newDeployer}
	cmd := f.command(cmp.Or(p.Name, filepath.Base(os.Args[0])), "this deployer")
	if p.Flags != nil {
		addMissing(cmd.Flags(), p.Flags)
	}
	p.Commands = append(slices.Clone(p.Commands), cmd)
	return p
}

// addMissing adds the flags that `register` defines to a flag set, except those that the flag set already contains.
func addMissing(to *pflag.FlagSet, register func(*pflag.FlagSet)) {
	more := pflag.NewFlagSet("", pflag.ContinueOnError)
	register(more)
	more.VisitAll(func(flag *pflag.Flag) {
		if flag.Shorthand != "" && to.ShorthandLookup(flag.Shorthand) != nil {
			flag.Shorthand = ""
		}
	})
	to.AddFlagSet(more)
}

// newDeployer returns the deployer of a program.
func newDeployer(p deployermain.Program) (*deployer, error) {
	args, err := argsOf(p)
	if err != nil {
		return nil, err
	}
	planner, ok := args.Deployer.(Planner)
	if !ok {
		return nil, fmt.Errorf("%T does not support plan", args.Deployer)
	}
	d := &deployer{itemType: args.Type, plan: planObjects(planner.Plan)}
	d.policy, d.limits = planner.TargetOptions()
	return d, nil
}

func argsOf(p deployermain.Program) (deployerlib.DeployerArgs, error) {
	if p.NewArgs != nil {
		return p.NewArgs()
	}
	return p.Args, nil
}
