// SPDX-License-Identifier: Apache-2.0

// Package explain implements `deployerkit explain`. The command explains the state of a deploy item, and says what a
// user should do.
package explain

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/cmd/internal/clientflags"
	"github.com/deployerkit/deployerkit/cmd/internal/historyflags"
	"github.com/deployerkit/deployerkit/internal/explain"
	"github.com/deployerkit/deployerkit/internal/heartbeat"
)

const long = `Explain the state of a deploy item: which revision of the contract it follows, whether a run is due and why, which deployer
is responsible, what the item waits for and since when, what happens next, how the last run ended, and what you can do.

The command changes nothing and uses your own rights. It lists the parts that you may not read as unknown. To include the
history of the deployer, set --history-address, or --history-pod if you may forward ports to its pod.`

const example = `  deployerkit explain shop/web
  deployerkit explain -n shop web --watch
  kubectl deployer explain web -o yaml`

// options contains the values of the flags.
type options struct {
	clientflags.Flags

	output  string
	watch   bool
	history historyflags.Flags
}

// NewCommand returns the command `explain`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "explain (NAMESPACE/NAME | -n NAMESPACE NAME)", Short: "Explain the state of a deploy item, and what to do",
		Long: long, Example: example, Args: cobra.ExactArgs(1), SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	fs := cmd.Flags()
	o.AddTo(fs)
	fs.StringVarP(&o.output, "output", "o", "", "format of the output: yaml or json (default: text)")
	fs.BoolVarP(&o.watch, "watch", "w", false, "explain again after each change, until Ctrl-C")
	o.history.AddTo(fs)
	cmd.ValidArgsFunction = completeItems(o)
	return cmd
}

// run explains the item once. With --watch, it explains the item again after each change.
func (o *options) run(cmd *cobra.Command, arg string) error {
	if err := clientflags.ValidateFormat(o.output, clientflags.Text, clientflags.YAML, clientflags.JSON); err != nil {
		return err
	}
	cfg, namespace, err := o.Config()
	if err != nil {
		return err
	}
	key := types.NamespacedName{}
	if key.Namespace, key.Name, err = clientflags.ParseName(arg, namespace); err != nil {
		return err
	}
	c, err := clientflags.NewClient(cfg)
	if err != nil {
		return err
	}
	gather := explain.Options{}
	host := cfg
	if hostConfig, err := o.ConfigForHost(); err != nil {
		return err
	} else if hostConfig != nil {
		if gather.Host, err = clientflags.NewClient(hostConfig); err != nil {
			return err
		}
		host = hostConfig
	}
	if gather.History, err = o.history.NewSource(cfg, host); err != nil {
		return err
	}
	progress := heartbeat.Start(cmd.OutOrStdout(), cmd.ErrOrStderr(), func(elapsed time.Duration) string {
		return "explain: waiting for the API server, " + elapsed.String()
	})
	defer progress.Stop()
	if err := o.printOnce(cmd.Context(), cmd, c, key, gather); err != nil || !o.watch {
		return err
	}
	progress.Stop() // from now on, it is normal if there is no output for hours
	return o.watchItem(cmd.Context(), cmd, c, key, gather)
}

// printOnce explains the item and writes the explanation.
func (o *options) printOnce(ctx context.Context, cmd *cobra.Command, c client.Reader, key types.NamespacedName, gather explain.Options) error {
	facts, err := explain.ReadFacts(ctx, c, key, gather)
	if err != nil {
		return err
	}
	e := explain.Explain(facts)
	if o.output != clientflags.Text {
		return clientflags.Print(cmd.OutOrStdout(), o.output, e)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), e.Format(explain.Style{Color: clientflags.IsTerminal()}))
	return err
}

// refresh is how long --watch waits after a change before it explains the item again, because changes often come in
// groups.
const refresh = 200 * time.Millisecond

// watchItem explains the item after each change, until the item is deleted or ctx is done.
func (o *options) watchItem(ctx context.Context, cmd *cobra.Command, c client.WithWatch, key types.NamespacedName, gather explain.Options) error {
	for ctx.Err() == nil {
		changes, err := c.Watch(ctx, &lsv1alpha1.DeployItemList{}, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
		if err != nil {
			return fmt.Errorf("watch DeployItem %s: %w", key, err)
		}
		for range changes.ResultChan() {
			discardEvents(ctx, changes.ResultChan(), refresh)
			if err := o.printAgain(ctx, cmd, c, key, gather); err != nil {
				changes.Stop()
				return watchError(ctx, cmd, key, err)
			}
		}
		discardEvents(ctx, nil, time.Second) // the watch has ended; open another one
	}
	return nil
}

// printAgain writes a new explanation below the previous one.
func (o *options) printAgain(ctx context.Context, cmd *cobra.Command, c client.Reader, key types.NamespacedName, gather explain.Options) error {
	switch o.output {
	case clientflags.Text:
		fmt.Fprintln(cmd.OutOrStdout())
	case clientflags.YAML:
		fmt.Fprintln(cmd.OutOrStdout(), "---")
	}
	return o.printOnce(ctx, cmd, c, key, gather)
}

// watchError returns the error of the command after --watch has ended. It returns nil if the item no longer exists or
// the user has ended the command.
func watchError(ctx context.Context, cmd *cobra.Command, key types.NamespacedName, err error) error {
	switch {
	case explain.IsMissing(err):
		fmt.Fprintf(cmd.ErrOrStderr(), "explain: DeployItem %s is gone\n", key)
		return nil
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// discardEvents discards events for the given time.
func discardEvents(ctx context.Context, from <-chan watch.Event, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case _, open := <-from:
			if !open {
				return
			}
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// maxCompletions is the maximum number of names for shell completion.
const maxCompletions = 100

// completeItems returns a function that completes the names of deploy items.
func completeItems(o *options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		cfg, namespace, err := o.Config()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := clientflags.NewClient(cfg)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
		defer cancel()
		var items lsv1alpha1.DeployItemList
		if err := c.List(ctx, &items, client.InNamespace(namespace), client.Limit(maxCompletions)); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for i := range items.Items {
			names = append(names, items.Items[i].Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
