// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/internal/process"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
)

// poll is the interval at which the command lists the deploy items.
const poll = 200 * time.Millisecond

// state describes what the command is doing. It is safe for concurrent use.
type state struct {
	mu   sync.Mutex
	what string
}

func (s *state) set(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = what
}

// formatText returns the line that is shown when there has been no output for a while.
func (s *state) formatText(elapsed time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("run: %s, %s", s.what, elapsed)
}

// environment is a running control plane with the deployer and, if requested, Landscaper.
type environment struct {
	options    *options
	client     client.Client
	kubeconfig string // path of a kubeconfig file

	cp         *controlplane.ControlPlane
	landscaper *landscaper.Landscaper
	deployer   *process.Process
}

// start starts the control plane, the deployer and, if requested, Landscaper. It also creates the objects in the files.
func start(ctx context.Context, o *options, f *files, progress io.Writer, state *state) (*environment, error) {
	env := &environment{options: o}
	err := env.start(ctx, f, progress, state)
	if err != nil {
		return nil, errors.Join(err, env.stop())
	}
	return env, nil
}

func (e *environment) start(ctx context.Context, f *files, progress io.Writer, state *state) error {
	state.set("starting the control plane")
	withLandscaper := e.options.installation != ""
	var err error
	if e.cp, err = controlplane.Start(ctx, controlplane.Options{Progress: progress, ControllerManager: withLandscaper}); err != nil {
		return err
	}
	if e.kubeconfig, err = e.cp.WriteKubeconfig(""); err != nil {
		return err
	}
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return err
	}
	if e.client, err = client.New(e.cp.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	if withLandscaper {
		state.set("starting Landscaper")
		if e.landscaper, err = landscaper.Start(ctx, e.cp, landscaper.Options{Progress: progress}); err != nil {
			return err
		}
	}
	state.set("waiting for the deployer")
	command := exec.Command(e.options.command[0], e.options.command[1:]...) //nolint:gosec // the user chooses the command
	command.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig)
	if e.deployer, err = process.Start(command, progress); err != nil {
		return fmt.Errorf("start the deployer: %w", err)
	}
	return e.createObjects(ctx, f)
}

// createObjects creates the objects in the files.
func (e *environment) createObjects(ctx context.Context, f *files) error {
	if err := f.fillTarget(e.cp.Kubeconfig()); err != nil {
		return err
	}
	for namespace := range f.listNamespaces() {
		if err := e.createNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	if f.target != nil {
		if err := e.client.Create(ctx, f.target); err != nil {
			return fmt.Errorf("create Target %s: %w", client.ObjectKeyFromObject(f.target), err)
		}
	}
	for _, object := range f.objects {
		if err := e.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	if f.item == nil {
		return nil
	}
	// Without the type of the deployer, the item would first run under the annotation revision, before it gets a job.
	return landscapertest.NewLandscaper(e.client, landscapertest.LandscaperOptions{DeployerType: true}).Deploy(ctx, f.item)
}

// createNamespace creates a namespace if it does not exist. If Landscaper runs, createNamespace then waits until
// Landscaper has prepared the namespace.
func (e *environment) createNamespace(ctx context.Context, name string) error {
	err := e.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	if e.landscaper == nil {
		return nil
	}
	return e.landscaper.WaitForContext(ctx, name)
}

// printPhases writes the phases of the deploy items until ctx is done or the deployer ends. With --once, it also
// returns when all items have finished or the timeout has passed.
func (e *environment) printPhases(ctx context.Context, out io.Writer, state *state) error {
	shown, limit := map[client.ObjectKey]string{}, time.NewTimer(e.options.timeout)
	defer limit.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		items := &lsv1alpha1.DeployItemList{}
		if err := e.client.List(ctx, items); err != nil {
			return fmt.Errorf("list deploy items: %w", err)
		}
		finished, failed := printItems(out, items.Items, shown)
		if e.options.once && finished {
			return failed
		}
		state.set("waiting for the deploy items to finish")
		timeout := limit.C
		if !e.options.once {
			timeout = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.deployer.Done:
			return fmt.Errorf("the deployer ended unexpectedly: %s", e.deployer.LastLine())
		case <-timeout:
			return fmt.Errorf("the deploy items did not finish within %s", e.options.timeout)
		case <-tick.C:
		}
	}
}

// printItems writes a line for each item whose phase or error has changed. The result `finished` is true if there are
// items and all of them have finished. The result `failed` is an error that lists the items that did not succeed.
func printItems(out io.Writer, items []lsv1alpha1.DeployItem, shown map[client.ObjectKey]string) (finished bool, failed error) {
	finished = len(items) > 0
	for i := range items {
		di := &items[i]
		key, text := client.ObjectKeyFromObject(di), string(di.Status.Phase)
		if di.Status.LastError != nil {
			text += ": " + contract.OneLine(di.Status.LastError.Message, maxMessage)
		}
		if text != "" && shown[key] != text {
			shown[key] = text
			fmt.Fprintf(out, "%s  %s\n", key, text)
		}
		if di.Status.JobID == "" || di.Status.JobID != di.Status.JobIDFinished {
			finished = false
		} else if di.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
			failed = errors.Join(failed, fmt.Errorf("deploy item %s: %s", key, text))
		}
	}
	return finished, failed
}

// maxMessage is the maximum length of an error message in the output.
const maxMessage = 500

// stop stops everything that the function `start` started.
func (e *environment) stop() error {
	var errs []error
	if e.deployer != nil {
		errs = append(errs, e.deployer.Stop())
	}
	if e.landscaper != nil {
		errs = append(errs, e.landscaper.Stop())
	}
	if e.cp != nil {
		errs = append(errs, e.cp.Stop())
	}
	return errors.Join(errs...)
}
