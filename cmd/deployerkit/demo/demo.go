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
	// Out receives the output: a live table if it is a terminal, otherwise lines.
	Out io.Writer
	// Keep leaves everything running after the scenario until the context is done.
	Keep bool
	// Landscaper selects the scenario of two Installations with the real Landscaper.
	Landscaper bool
}

// Run runs the demo. It returns nil only if all checks succeed; otherwise the error lists those that failed. The demo
// ends early when ctx is done.
func Run(ctx context.Context, o Options) error {
	began := time.Now()
	sc := newTerminal(o.Out)
	steps, servers := scenario, "etcd and kube-apiserver"
	if o.Landscaper {
		steps, servers = landscaperScenario, "etcd, kube-apiserver and kube-controller-manager, and the real Landscaper"
	}
	sc.printf("Starting a control plane: %s …", servers)
	progress := heartbeat.Start(o.Out, o.Out, func(elapsed time.Duration) string { return fmt.Sprintf("still starting, %s", elapsed) })
	st, err := setUp(ctx, o.Out, o.Landscaper)
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
	broken := tell(ctx, st, sc, steps)
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

// verdictOf returns the failed checks as one error.
func verdictOf(ctx context.Context, broken []string) error {
	if err := interruption(ctx); err != nil {
		return err
	}
	if len(broken) == 0 {
		return nil
	}
	return fmt.Errorf("%d of the checks failed:\n  %s", len(broken), strings.Join(broken, "\n  "))
}

// interruption returns the error of an interrupted demo, or nil if ctx is not done.
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

// since returns a duration for users.
func since(t time.Time) time.Duration { return time.Since(t).Round(100 * time.Millisecond) }
