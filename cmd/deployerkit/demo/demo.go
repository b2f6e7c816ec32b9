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

// Options say how the demo is shown.
type Options struct {
	// Out is where it is shown: a live table if it is a terminal, else lines.
	Out io.Writer
	// Keep leaves everything running after the scenario, until the context ends.
	Keep bool
	// Landscaper tells the scenario of two Installations under the real Landscaper.
	Landscaper bool
}

// Run shows the demo. It returns nil only if everything came out as promised;
// the error lists what did not. ctx ends it early.
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
	sc.printf("It runs, with the mock deployer and the manifest deployer beside it (%s).", since(began))
	stop := sc.follow(st.state)
	progress = heartbeat.Start(sc, sc, func(elapsed time.Duration) string { return fmt.Sprintf("… %s", elapsed) })
	broken := tell(ctx, st, sc, steps)
	progress.Stop()
	stop()
	sc.printf("\nHooks called: %s.", st.state.summary())
	if err := verdictOf(ctx, broken); err != nil {
		return err
	}
	sc.printf("Everything came out as promised (%s).", since(began))
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

// interruption returns the error of a demo whose context has ended, or nil.
func interruption(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("the demo was interrupted: %w", context.Cause(ctx))
}

// keep tells how to look around and waits until ctx ends.
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
	sc.printf("\nAll of it stays until Ctrl-C. Look around, in another terminal:\n\n  export KUBECONFIG=%s", kubeconfig)
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

// since is a time span for people.
func since(t time.Time) time.Duration { return time.Since(t).Round(100 * time.Millisecond) }
