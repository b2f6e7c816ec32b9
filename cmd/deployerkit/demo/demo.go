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
	"github.com/deployerkit/deployerkit/internal/steps"
)

// timeout is how long the demo waits for an expected state.
const timeout = time.Minute

// Options configures the demo.
type Options struct {
	// Out receives the output. If Out is a terminal, the output contains a table that is updated in place. Otherwise each
	// change is written as a line.
	Out io.Writer
	// Keep means that everything keeps running after the last step until the context is done.
	Keep bool
	// Landscaper selects the steps with two Installations, and runs the real Landscaper.
	Landscaper bool
}

// Run runs the demo. It returns nil if all checks have succeeded. Otherwise the error lists the failed checks. If ctx
// is done, the demo ends early.
func Run(ctx context.Context, o Options) error {
	began, t := time.Now(), newTerminal(o.Out)
	servers := "etcd and kube-apiserver"
	if o.Landscaper {
		servers = "etcd, kube-apiserver and kube-controller-manager, and the real Landscaper"
	}
	t.printAbove("Starting a control plane: %s …", servers)
	progress := heartbeat.Start(o.Out, o.Out, func(elapsed time.Duration) string { return fmt.Sprintf("still starting, %s", elapsed) })
	d, err := start(ctx, progress, o.Landscaper)
	progress.Stop()
	if err != nil {
		return cmp.Or(checkInterrupted(ctx), err)
	}
	defer func() {
		if err := d.stop(); err != nil {
			t.printAbove("while stopping: %v", err)
		}
	}()
	t.printAbove("It is running, with the mock deployer and the manifest deployer (%s).", round(time.Since(began)))
	address, stop, err := d.servePage(ctx)
	if err != nil {
		return err
	}
	defer stop()
	t.printAbove("The page shows it while the demo runs (--stay keeps it): %s", address)
	if err := d.runAndDisplay(ctx, t); err != nil {
		return err
	}
	t.printAbove("All checks succeeded (%s).", round(time.Since(began)))
	if o.Keep {
		t.printAbove("The page: %s", address)
		return d.waitForUser(ctx, t)
	}
	return nil
}

// runAndDisplay runs the steps of the demo while it displays the state of the items. Its error lists the failed checks.
func (d *demo) runAndDisplay(ctx context.Context, t *terminal) error {
	story := d.newDeployItemSteps()
	if d.landscaper != nil {
		story = d.newInstallationSteps()
	}
	stop := t.startDisplay(ctx, d.table)
	progress := heartbeat.Start(t, t, func(elapsed time.Duration) string { return fmt.Sprintf("… %s", elapsed) })
	failed := d.runSteps(ctx, t, story)
	progress.Stop()
	stop()
	t.printAbove("\nHooks called: %s.", d.table.summarizeHooks())
	return newFailure(ctx, failed)
}

// runSteps runs and reports steps. It returns the errors of the steps that failed.
func (d *demo) runSteps(ctx context.Context, t *terminal, story []steps.Step) []error {
	number := 0
	runner := steps.Runner{
		Env: d.env, Timeout: timeout, KeepGoing: true,
		Started: func(s steps.Step) {
			if s.Expect == nil {
				number++
				t.printAbove("\n%d. %s", number, s.Name)
			}
		},
		Finished: func(s steps.Step, duration time.Duration, err error) {
			switch {
			case err != nil:
				t.printAbove("  ✗ %s: %v", s.Name, err)
			case s.Expect != nil:
				t.printAbove("  ✓ %s (%s)", s.Name, round(duration))
			}
		},
	}
	return runner.Run(ctx, story...)
}

// newFailure returns an error that lists the failed checks, or nil if there are none.
func newFailure(ctx context.Context, failed []error) error {
	if err := checkInterrupted(ctx); err != nil || len(failed) == 0 {
		return err
	}
	return fmt.Errorf("%d of the checks failed:\n  %s", len(failed), strings.ReplaceAll(errors.Join(failed...).Error(), "\n", "\n  "))
}

// checkInterrupted returns an error if ctx is done, which means that the user has interrupted the demo.
func checkInterrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("the demo was interrupted: %w", context.Cause(ctx))
}

// waitForUser prints how to inspect the cluster, and waits until ctx is done.
func (d *demo) waitForUser(ctx context.Context, t *terminal) error {
	kubeconfig, err := d.cp.WriteKubeconfig("")
	if err != nil {
		return err
	}
	commands := []string{"get deployitems"}
	if d.landscaper != nil {
		commands = []string{"apply -f examples/landscaper", "get installations,executions,deployitems,dataobjects"}
	}
	t.printAbove("\nEverything keeps running until Ctrl-C. To look around, in another terminal:\n\n  export KUBECONFIG=%s", kubeconfig)
	for _, command := range commands {
		t.printAbove("  %s -n %s %s", cmp.Or(d.cp.Kubectl(), "kubectl"), namespace, command)
	}
	t.printAbove("")
	stop := t.startDisplay(ctx, d.table)
	defer stop()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// round rounds a duration for display.
func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
