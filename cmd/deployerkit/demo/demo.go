// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/deployerkit/deployerkit/internal/heartbeat"
)

// Options configures the demo.
type Options struct {
	// Out receives the output. If Out is a terminal, the output contains a table that is updated in place. Otherwise each
	// change is written as a line.
	Out io.Writer
	// Keep means that everything keeps running after the scenario until the context is done.
	Keep bool
	// Landscaper selects the scenario that runs the real Landscaper with two Installations.
	Landscaper bool
}

// Run runs the demo. It returns nil if all checks have succeeded. Otherwise the error lists the failed checks. If ctx
// is done, the demo ends early.
func Run(ctx context.Context, o Options) error {
	began := time.Now()
	sc := newTerminal(o.Out)
	steps, servers := scenario, "etcd and kube-apiserver"
	if o.Landscaper {
		steps, servers = landscaperScenario, "etcd, kube-apiserver and kube-controller-manager, and the real Landscaper"
	}
	sc.printf("Starting a control plane: %s …", servers)
	progress := heartbeat.Start(o.Out, o.Out, func(elapsed time.Duration) string { return fmt.Sprintf("still starting, %s", elapsed) })
	st, err := setUp(ctx, progress, o.Landscaper)
	progress.Stop()
	if err != nil {
		return cmp.Or(interruption(ctx), err)
	}
	defer func() {
		if err := st.close(); err != nil {
			sc.printf("while stopping: %v", err)
		}
	}()
	sc.printf("It is running, with the mock deployer and the manifest deployer (%s).", since(began))
	stop := sc.follow(st.state)
	progress = heartbeat.Start(sc, sc, func(elapsed time.Duration) string { return fmt.Sprintf("… %s", elapsed) })
	broken := runSteps(ctx, st, sc, steps)
	progress.Stop()
	stop()
	sc.printf("\nHooks called: %s.", st.state.summary())
	if err := verdictOf(ctx, broken); err != nil {
		return err
	}
	sc.printf("All checks succeeded (%s).", since(began))
	if o.Keep {
		return keep(ctx, st, sc)
	}
	return nil
}

// verdictOf returns an error that lists the failed checks, or nil if there are none.
func verdictOf(ctx context.Context, broken []string) error {
	if err := interruption(ctx); err != nil {
		return err
	}
	if len(broken) == 0 {
		return nil
	}
	return fmt.Errorf("%d of the checks failed:\n  %s", len(broken), strings.Join(broken, "\n  "))
}

// interruption returns an error if ctx is done, which means that the user has interrupted the demo.
func interruption(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("the demo was interrupted: %w", context.Cause(ctx))
}

// keep prints how to inspect the cluster and waits until ctx is done.
func keep(ctx context.Context, st *env, sc *terminal) error {
	kubeconfig, err := st.cp.KubeconfigFile("")
	if err != nil {
		return err
	}
	kubectl := st.cp.Kubectl()
	if kubectl == "" {
		kubectl = "kubectl"
	}
	commands := []string{"get deployitems"}
	if st.landscaper != nil {
		commands = []string{"apply -f examples/landscaper", "get installations,executions,deployitems,dataobjects"}
	}
	sc.printf("\nEverything keeps running until Ctrl-C. To look around, in another terminal:\n\n  export KUBECONFIG=%s", kubeconfig)
	for _, command := range commands {
		sc.printf("  %s -n %s %s", kubectl, namespace, command)
	}
	sc.printf("")
	stop := sc.follow(st.state)
	defer stop()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// since returns the time since t, rounded for display.
func since(t time.Time) time.Duration { return time.Since(t).Round(100 * time.Millisecond) }
