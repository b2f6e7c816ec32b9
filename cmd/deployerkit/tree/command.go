// SPDX-License-Identifier: Apache-2.0

// Package tree implements `deployerkit tree`, which shows what belongs to an Installation or a deploy item, down to the
// objects in the target.
package tree

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/cmd/internal/clientflags"
	"github.com/deployerkit/deployerkit/explain"
	"github.com/deployerkit/deployerkit/internal/heartbeat"
	"github.com/deployerkit/deployerkit/targets"
)

const long = `Show an Installation with its sub-installations, Executions and deploy items, the objects of these in the target, and what those
own: phase, age and message. Without a name, show all of the namespace.

The command only reads, and with your own rights. If you may read the Target and its Secret, the objects are shown as they are;
else as the status of their deploy item has them.`

const example = `  deployerkit tree -n shop
  deployerkit tree shop/database --failed
  kubectl deployer tree database -o json`

// patience is how long the command waits for a response of a target.
const patience = 10 * time.Second

// options holds the values of the command line.
type options struct {
	clientflags.Flags

	output string
	failed bool
	policy targets.Policy
}

// Command returns the command.
func Command() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "tree [NAME | NAMESPACE/NAME]", Short: "Show what belongs to an Installation or a deploy item",
		Long: long, Example: example, Args: cobra.MaximumNArgs(1), SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	fs := cmd.Flags()
	o.AddTo(fs)
	fs.StringVarP(&o.output, "output", "o", "", "format of the output: json (default: text)")
	fs.BoolVar(&o.failed, "failed", false, "show only what failed, and what it belongs to")
	fs.BoolVar(&o.policy.AllowPrivateHosts, "allow-private-hosts", false, "open Targets at private addresses too, such as those of a local cluster")
	return cmd
}

// run reads the tree and prints it.
func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := clientflags.ValidFormat(o.output, clientflags.Text, clientflags.JSON); err != nil {
		return err
	}
	cfg, namespace, err := o.Config()
	if err != nil {
		return err
	}
	name := ""
	if len(args) > 0 {
		if namespace, name, err = clientflags.Name(args[0], namespace); err != nil {
			return err
		}
	}
	c, err := clientflags.NewClient(cfg)
	if err != nil {
		return err
	}
	progress := heartbeat.Start(cmd.OutOrStdout(), cmd.ErrOrStderr(), func(elapsed time.Duration) string {
		return "tree: waiting for the clusters, " + elapsed.String()
	})
	defer progress.Stop()
	open, done := o.opener(cfg, c)
	defer done()
	tree, err := explain.ReadTree(cmd.Context(), c, explain.TreeOptions{Namespace: namespace, Name: name, Open: open})
	if err != nil {
		return err
	}
	if o.failed {
		tree.OnlyFailed()
	}
	if o.output == clientflags.JSON {
		return clientflags.Print(cmd.OutOrStdout(), o.output, tree)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), tree.Text(explain.Style{Color: clientflags.IsTerminal()}))
	return err
}

// opener returns a function that opens Targets as a deployer does, with the same restrictions.
func (o *options) opener(cfg *rest.Config, c client.Client) (open func(context.Context, *lsv1alpha1.Target) (client.Reader, func(), error), done func()) {
	resolver := targets.NewResolver(c, clock.RealClock{}, 0)
	pool := targets.NewPool(targets.PoolOptions{
		Policy: o.policy, Resolver: resolver, Landscaper: cfg, LandscaperClient: c, GetTimeout: patience, ConnectTimeout: patience,
	})
	return func(ctx context.Context, target *lsv1alpha1.Target) (client.Reader, func(), error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		resolved, err := resolver.Resolve(ctx, target)
		if err != nil {
			cancel()
			return nil, nil, err
		}
		opened, err := pool.Get(ctx, resolved)
		if err != nil {
			cancel()
			return nil, nil, err
		}
		return opened, cancel, nil
	}, pool.Close
}
