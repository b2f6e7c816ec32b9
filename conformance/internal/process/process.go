// SPDX-License-Identifier: Apache-2.0

// Package process runs a deployer as a command or in this process, and stops or kills it.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/faultnet"
)

// Process is a running deployer. Exactly one of command and network is set.
type Process struct {
	command *exec.Cmd
	network *faultnet.Network
	cancel  context.CancelFunc
	bound   time.Duration

	ended chan struct{}
	err   error // once ended
}

// Start runs a deployer in this process. It runs until Stop or Kill, which wait at most for bound; only the values of ctx
// are used.
func Start(ctx context.Context, run func(context.Context, *rest.Config) error, cfg *rest.Config, bound time.Duration) *Process {
	p := &Process{network: faultnet.NewNetwork(), ended: make(chan struct{}), bound: bound}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(p.ended)
		p.err = run(ctx, p.network.Wrap(cfg))
	}()
	return p
}

// Exec starts a command in a process group of its own, so that its children end with it. Its output goes to logs unless
// the command has writers of its own.
func Exec(command *exec.Cmd, logs io.Writer, bound time.Duration) (*Process, error) {
	p := &Process{command: command, ended: make(chan struct{}), bound: bound}
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
		return nil, fmt.Errorf("start deployer: %w", err)
	}
	return p, nil
}

// Ended returns a channel that is closed when the deployer has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Failure returns an error if the deployer has ended, for use while nothing has stopped it.
func (p *Process) Failure() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the deployer ended by itself: %w", orUnknown(p.err))
	default:
		return nil
	}
}

// Stop ends the deployer as a user does, with SIGTERM or the end of its context. Errors: the deployer has ended before, or
// does not end in time.
func (p *Process) Stop() error {
	if err := p.Failure(); err != nil {
		return err
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

// Kill ends the deployer without giving it a chance to write anything.
func (p *Process) Kill() error {
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

// await waits for the end. It kills a command that does not end in time.
func (p *Process) await() error {
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
