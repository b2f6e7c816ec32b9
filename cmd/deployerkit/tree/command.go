// SPDX-License-Identifier: Apache-2.0

// Package tree implements `deployerkit tree`. The command shows the objects that belong to an Installation, an
// Execution or a deploy item, including objects in the target.
package tree

import (
	"context"
	"fmt"
	"net/http"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/cmd/internal/clientflags"
	"github.com/deployerkit/deployerkit/internal/explain"
	"github.com/deployerkit/deployerkit/internal/heartbeat"
	"github.com/deployerkit/deployerkit/targets"
)

const long = `Show the phase, the age and the message of an Installation and of everything that belongs to it: its sub-installations,
Executions and deploy items, the objects of the deploy items in the target, and the dependents of these objects. Without a
name, show all objects of the namespace.

The command changes nothing and uses your own rights. If you may read the Target and its Secret, the command shows the current
state of the objects in the target. Otherwise, it shows their state as recorded in the status of the deploy item.`

const example = `  deployerkit tree -n shop
  deployerkit tree shop/database --failed
  kubectl deployer tree database -o json`

// timeout is the maximum time that the command waits for a response of a target.
const timeout = 10 * time.Second

// options contains the values of the flags.
type options struct {
	clientflags.Flags

	output string
	failed bool
	policy targets.Policy
}

// NewCommand returns the command `tree`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "tree [NAME | NAMESPACE/NAME]", Short: "Show the objects that belong to an Installation or a deploy item",
		Long: long, Example: example, Args: cobra.MaximumNArgs(1), SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	fs := cmd.Flags()
	o.AddTo(fs)
	fs.StringVarP(&o.output, "output", "o", "", "format of the output: json (default: text)")
	fs.BoolVar(&o.failed, "failed", false, "show only failed objects, and the objects to which they belong")
	fs.BoolVar(&o.policy.AllowPrivateHosts, "allow-private-hosts", false, "also open Targets with private addresses, such as the address of a local cluster")
	return cmd
}

// run reads the tree and prints it.
func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := clientflags.ValidateFormat(o.output, clientflags.Text, clientflags.JSON); err != nil {
		return err
	}
	cfg, namespace, err := o.Config()
	if err != nil {
		return err
	}
	name := ""
	if len(args) > 0 {
		if namespace, name, err = clientflags.ParseName(args[0], namespace); err != nil {
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
	open, done := NewClientFactory(cfg, c, o.policy, nil)
	defer done()
	tree, err := explain.ReadTree(cmd.Context(), c, explain.TreeOptions{Namespace: namespace, Name: name, Open: open})
	if err != nil {
		return err
	}
	if o.failed {
		tree.FilterFailed()
	}
	if o.output == clientflags.JSON {
		return clientflags.Print(cmd.OutOrStdout(), o.output, tree)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), tree.Format(explain.Style{Color: clientflags.IsTerminal()}))
	return err
}

// NewClientFactory returns a function that creates clients for Targets, with the same restrictions as in a deployer.
// The parameter `wrap` wraps the transport of these clients; it may be nil. The caller must call `done`, which closes
// all clients.
func NewClientFactory(cfg *rest.Config, c client.Client, policy targets.Policy, wrap func(http.RoundTripper) http.RoundTripper) (open func(context.Context, *lsv1alpha1.Target) (client.Reader, func(), error), done func()) {
	resolver := targets.NewResolver(c, clock.RealClock{}, 0)
	pool := targets.NewPool(targets.PoolOptions{
		Policy: policy, Resolver: resolver, Landscaper: cfg, LandscaperClient: c, GetTimeout: timeout, ConnectTimeout: timeout,
		WrapTransport: wrap,
	})
	return func(ctx context.Context, target *lsv1alpha1.Target) (client.Reader, func(), error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
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
