// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/deployerkit/deployerkit/cmd/internal/manifestflags"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/internal/heartbeat"
)

// ErrToDo indicates that the plan is complete and there is something to do.
var ErrToDo = errors.New("there is something to do")

const long = `Show what a reconcile of a deploy item by the manifest deployer would create, change and delete. Nothing is written:
the target computes the changes in a dry run.

With -f the deploy item is read from a file, as it would become. With a name it is read from the Landscaper cluster, as
it is. What the item has deployed so far and its Target are also read from the Landscaper cluster. Values of Secrets are
masked.

Exit codes: 0 there is nothing to do, 2 there is something to do, 1 the plan failed or is incomplete.`

const example = `  deployerkit plan -f item.yaml --kubeconfig landscaper.kubeconfig
  deployerkit plan web -n shop`

// flags holds the values of the command line.
type flags struct {
	file             string
	name             string
	namespace        string
	kubeconfig       string
	targetKubeconfig string
	options          manifest.Options
}

// Command returns the command. It writes the plan to its output, and returns ErrToDo if there is something to do.
func Command() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use: "plan (NAME | -f FILE)", Short: "Show what a deploy item with manifests would change in its target",
		Long: long, Example: example, Args: cobra.MaximumNArgs(1), SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.name = args[0]
			}
			progress := heartbeat.Start(cmd.OutOrStdout(), cmd.ErrOrStderr(), func(elapsed time.Duration) string {
				return "plan: waiting for the clusters, " + elapsed.String()
			})
			defer progress.Stop()
			err := f.run(cmd.Context(), cmd)
			cmd.SilenceErrors = errors.Is(err, ErrToDo) // not an error for the user
			return err
		},
	}
	f.addTo(cmd.Flags())
	return cmd
}

func (f *flags) addTo(fs *pflag.FlagSet) {
	fs.StringVarP(&f.file, "filename", "f", "", `file with the deploy item, YAML or JSON; "-" for the standard input`)
	fs.StringVarP(&f.namespace, "namespace", "n", "", `namespace of the deploy item (default: that of the file, otherwise "default")`)
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster with the deploy items (default: $KUBECONFIG, ~/.kube/config)")
	fs.StringVar(&f.targetKubeconfig, "target-kubeconfig", "", "kubeconfig of the cluster to plan for, instead of the item's Target")
	manifestflags.Add(fs, &f.options)
}

// validate returns an error for flags that exclude each other.
func (f *flags) validate() error {
	if (f.name == "") == (f.file == "") {
		return errors.New("give either the name of a deploy item or a file with -f")
	}
	return f.options.Validate()
}

// run computes the plan and prints it.
func (f *flags) run(ctx context.Context, cmd *cobra.Command) error {
	if err := f.validate(); err != nil {
		return err
	}
	ls, err := openLandscaper(f.kubeconfig)
	if err != nil {
		return err
	}
	item, err := f.item(ctx, ls, cmd.InOrStdin())
	if err != nil {
		return err
	}
	to, err := f.target(ctx, ls, item)
	if err != nil {
		return err
	}
	defer to.close()
	plan, err := manifest.Plan(ctx, ls.Client, to.Client, item, f.options)
	if fault, ok := errors.AsType[lserrors.LsError](err); ok {
		return errors.New(fault.LandscaperError().Message) // without the parts that only Landscaper needs
	}
	if err != nil && len(plan.Changes)+len(plan.Moves)+plan.Unchanged == 0 {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "DeployItem %s/%s on %s\n%s", item.Namespace, item.Name, to.name, plan)
	switch {
	case err != nil:
		return fmt.Errorf("the plan is not complete: %w", err)
	case len(plan.Changes)+len(plan.Moves) > 0:
		return ErrToDo
	}
	return nil
}
