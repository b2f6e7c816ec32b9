// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// process is the running deployer. Exactly one of command and network is set.
type process struct {
	command *exec.Cmd
	network *faultnet.Network
	cancel  context.CancelFunc
	bound   time.Duration

	ended chan struct{}
	err   error // once ended
}

// launch starts the subject. It runs until it is stopped or killed; ctx gives values only.
func launch(ctx context.Context, s Subject, cfg *rest.Config, kubeconfig string) (*process, error) {
	p := &process{ended: make(chan struct{}), bound: s.Bounds.Stop}
	if s.Command != nil {
		return p, p.exec(s.Command(kubeconfig), s.Logs)
	}
	p.network = faultnet.NewNetwork()
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(p.ended)
		p.err = s.Start(ctx, p.network.Wrap(cfg))
	}()
	return p, nil
}

// exec starts a command, in a process group of its own: what it starts itself ends with it.
func (p *process) exec(command *exec.Cmd, logs io.Writer) error {
	p.command = command
	if command.Stdout == nil && command.Stderr == nil {
		command.Stdout, command.Stderr = logs, logs
	}
	command.WaitDelay = p.bound
	ownGroup(command)
	started := make(chan error)
	go func() {
		// Where the kernel ends a child with its parent, it does so when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			p.err = command.Wait()
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start deployer: %w", err)
	}
	return nil
}

// stop ends the deployer as a user does, with SIGTERM or the end of its context. One that ended before is an error.
func (p *process) stop() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the deployer ended by itself: %w", orUnknown(p.err))
	default:
	}
	if p.command != nil {
		if err := signalGroup(p.command, syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop deployer: %w", err)
		}
	} else {
		p.cancel()
	}
	return p.await()
}

// kill ends the deployer without giving it a chance to write anything.
func (p *process) kill() error {
	if p.command != nil {
		if err := signalGroup(p.command, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill deployer: %w", err)
		}
	} else {
		p.network.Kill()
		p.cancel()
	}
	return p.await()
}

// await waits for the end; a command that does not end in time is killed.
func (p *process) await() error {
	timer := time.NewTimer(p.bound)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
	}
	err := fmt.Errorf("the deployer did not end within %s", p.bound)
	if p.command != nil {
		err = errors.Join(err, signalGroup(p.command, syscall.SIGKILL))
	}
	return err
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}

// Library is a Start for deployers made with deployerlib: it runs what args returns in a manager of its own, without leader
// election. Metrics go nowhere, and times that the arguments leave out are short, as in package landscapertest.
func Library(args func() deployerlib.DeployerArgs) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		scheme, err := landscapertest.Scheme()
		if err != nil {
			return err
		}
		a := args()
		shorten(&a)
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: logr.Discard(),
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			return fmt.Errorf("make manager: %w", err)
		}
		if err := deployerlib.Add(logr.Discard(), mgr, nil, a); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// shorten fills in what a test wants different from a real process.
func shorten(a *deployerlib.DeployerArgs) {
	if a.Registerer == nil {
		a.Registerer = prometheus.NewRegistry()
	}
	if a.PollInterval == 0 {
		a.PollInterval = landscapertest.ShortPoll
	}
	if a.GracePeriod == 0 {
		a.GracePeriod = landscapertest.ShortGrace
	}
	if a.Backoff == (deployerlib.Backoff{}) {
		a.Backoff = deployerlib.Backoff{Min: landscapertest.ShortBackoffMin, Max: landscapertest.ShortBackoffMax}
	}
}
