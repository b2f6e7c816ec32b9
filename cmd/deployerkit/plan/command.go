// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/cmd/internal/manifestflags"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/internal/heartbeat"
	"github.com/deployerkit/deployerkit/internal/terminal"
	"github.com/deployerkit/deployerkit/targets"
)

// ErrToDo is returned if the plan is complete and contains changes. It has a method ExitCode, which returns 2.
var ErrToDo error = pendingChanges{}

// pendingChanges is the type of ErrToDo.
type pendingChanges struct{}

// Error implements error.
func (pendingChanges) Error() string { return "there is something to do" }

// ExitCode returns the exit code of the process; see deployermain.Program.Commands.
func (pendingChanges) ExitCode() int { return 2 }

const long = `Show what a reconcile of a deploy item by %s would create, change and delete. Nothing is written:
the target computes the changes in a dry run.

With -f, the command reads the new version of the deploy item from a file. With a name, it reads the current version from
the Landscaper cluster. In both cases, it reads the Target and the list of deployed objects from the Landscaper cluster.
Values of Secrets are masked.

Exit codes: 0 the plan contains no changes, 2 the plan contains changes, 1 the plan failed or is incomplete.`

const example = `  %[1]s plan -f item.yaml --kubeconfig landscaper.kubeconfig
  %[1]s plan web -n shop`

// flags contains the values of the flags.
type flags struct {
	file             string
	name             string
	namespace        string
	kubeconfig       string
	targetKubeconfig string
	// newDeployer returns the deployer whose reconcile is planned. It is called after the flags have been parsed.
	newDeployer func() (*deployer, error)
}

// deployer contains the functions and options of a deployer that a plan needs.
type deployer struct {
	itemType lsv1alpha1.DeployItemType
	policy   targets.Policy
	limits   targets.Limits
	wrap     func(http.RoundTripper) http.RoundTripper // wraps the transport to the target; may be nil
	// plan returns the plan for an item. If it returns an error, the result contains the changes that could be
	// determined, and is nil if there are none.
	plan func(ctx context.Context, ls client.Reader, to *target, di *lsv1alpha1.DeployItem) (Result, error)
}

// planObjects returns a value for the field plan of a deployer.
func planObjects(plan func(ctx context.Context, ls client.Reader, target client.Client, di *lsv1alpha1.DeployItem) (apply.Plan, error)) func(context.Context, client.Reader, *target, *lsv1alpha1.DeployItem) (Result, error) {
	return func(ctx context.Context, ls client.Reader, to *target, di *lsv1alpha1.DeployItem) (Result, error) {
		result, err := plan(ctx, ls, to.Client, di)
		if err != nil && result.CountChanges()+result.Unchanged == 0 {
			return nil, err
		}
		return result, err
	}
}

// Command returns the command `plan` for the manifest deployer. The command writes the plan to its standard output. If
// the plan contains changes, the command returns ErrToDo.
func Command() *cobra.Command {
	var options manifest.Options
	f := &flags{newDeployer: func() (*deployer, error) { return newManifestDeployer(options), options.Validate() }}
	cmd := f.command("deployerkit", "the manifest deployer")
	cmd.Short = "Show what a deploy item with manifests would change in its target"
	manifestflags.Add(cmd.Flags(), &options)
	return cmd
}

func newManifestDeployer(options manifest.Options) *deployer {
	return &deployer{
		itemType: manifest.Type, policy: options.Targets, limits: options.TargetLimits,
		plan: planObjects(func(ctx context.Context, ls client.Reader, target client.Client, di *lsv1alpha1.DeployItem) (apply.Plan, error) {
			return manifest.Plan(ctx, ls, target, di, options)
		}),
	}
}

// command returns the command `plan` for the deployer of a program.
func (f *flags) command(program, deployer string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan (NAME | -f FILE)", Short: "Show what a deploy item would change in its target",
		Long: fmt.Sprintf(long, deployer), Example: fmt.Sprintf(example, program), Args: cobra.MaximumNArgs(1), SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.name = args[0]
			}
			progress := heartbeat.Start(cmd.OutOrStdout(), cmd.ErrOrStderr(), func(elapsed time.Duration) string {
				return "plan: waiting for the clusters, " + elapsed.String()
			})
			defer progress.Stop()
			err := f.run(cmd.Context(), cmd)
			cmd.SilenceErrors = errors.Is(err, ErrToDo) // for the user, a plan with changes is not an error
			return err
		},
	}
	f.addTo(cmd.Flags())
	return cmd
}

func (f *flags) addTo(fs *pflag.FlagSet) {
	fs.StringVarP(&f.file, "filename", "f", "", `file with the deploy item, YAML or JSON; "-" for the standard input`)
	fs.StringVarP(&f.namespace, "namespace", "n", "", `namespace of the deploy item (default: the namespace in the file, otherwise "default")`)
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster with the deploy items (default: $KUBECONFIG, ~/.kube/config)")
	fs.StringVar(&f.targetKubeconfig, "target-kubeconfig", "", "kubeconfig of the cluster to plan for, instead of the item's Target")
}

// validate returns an error for flags that cannot be combined.
func (f *flags) validate() error {
	if (f.name == "") == (f.file == "") {
		return errors.New("give either the name of a deploy item or a file with -f")
	}
	return nil
}

// run computes the plan and prints it.
func (f *flags) run(ctx context.Context, cmd *cobra.Command) error {
	if err := f.validate(); err != nil {
		return err
	}
	d, err := f.newDeployer()
	if err != nil {
		return err
	}
	ls, err := openLandscaper(f.kubeconfig)
	if err != nil {
		return err
	}
	item, err := f.item(ctx, ls, d.itemType, cmd.InOrStdin())
	if err != nil {
		return err
	}
	to, err := f.openTarget(ctx, ls, d, item)
	if err != nil {
		return err
	}
	defer to.close()
	plan, err := d.plan(ctx, ls.Client, to, item)
	if fault, ok := errors.AsType[lserrors.LsError](err); ok {
		return errors.New(fault.LandscaperError().Message) // the other parts of the error are only for Landscaper
	}
	if plan == nil {
		return err
	}
	fmt.Fprintf(terminal.NewWriter(cmd.OutOrStdout()), "DeployItem %s/%s on %s\n%s", item.Namespace, item.Name, to.name, plan)
	switch {
	case err != nil:
		return fmt.Errorf("the plan is not complete: %w", err)
	case plan.CountChanges() > 0:
		return ErrToDo
	}
	return nil
}
