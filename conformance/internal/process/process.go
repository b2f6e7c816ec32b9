// SPDX-License-Identifier: Apache-2.0

// Package process runs a deployer as a command or in the current process, and stops or kills it.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/internal/process"
)

// Process is a running deployer. The field `command` is set for a command. The field `network` is set for a deployer in
// this process.
type Process struct {
	command *process.Process
	network *faultnet.Network
	cancel  context.CancelFunc
	timeout time.Duration // time limit of Stop and, for a deployer in this process, of Kill

	ended <-chan struct{}
	err   error // the result of a deployer in this process
}

// Start runs a deployer in this process until Stop or Kill is called. Stop and Kill return an error if the deployer
// does not end within the given timeout. The values of ctx are passed on to the deployer, but the cancellation of ctx
// has no effect.
func Start(ctx context.Context, run func(context.Context, *rest.Config) error, cfg *rest.Config, timeout time.Duration) *Process {
	ended := make(chan struct{})
	p := &Process{network: faultnet.NewNetwork(), ended: ended, timeout: timeout}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(ended)
		p.err = run(ctx, p.network.Wrap(cfg))
	}()
	return p
}

// Exec starts a command in its own process group, so that Stop and Kill also end its child processes. Unless
// command.Stdout and command.Stderr are set, the output of the command is written to the writer `logs`.
func Exec(command *exec.Cmd, logs io.Writer, timeout time.Duration) (*Process, error) {
	started, err := process.Start(command, logs)
	if err != nil {
		return nil, fmt.Errorf("start deployer: %w", err)
	}
	return &Process{command: started, ended: started.Done, timeout: timeout}, nil
}

// Ended returns a channel that is closed when the deployer has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Failure returns an error if the deployer has ended. It must be called before Stop and Kill, because they end the
// deployer intentionally.
func (p *Process) Failure() error {
	select {
	case <-p.ended:
	default:
		return nil
	}
	err := p.err
	if p.command != nil {
		err = p.command.Err()
	}
	if err == nil {
		err = errors.New("no error was reported")
	}
	return fmt.Errorf("the deployer ended unexpectedly: %w", err)
}

// Stop stops the deployer with SIGTERM or by canceling its context. It returns an error if the deployer had already
// ended or does not end in time.
func (p *Process) Stop() error {
	if err := p.Failure(); err != nil {
		return err
	}
	if p.command != nil {
		return p.command.StopWithin(p.timeout)
	}
	return p.cancelAndWait()
}

// Kill ends the deployer immediately. After Kill has returned, the deployer cannot write any more. Kill returns an
// error in the same cases as Stop.
func (p *Process) Kill() error {
	if err := p.Failure(); err != nil {
		return err
	}
	if p.command != nil {
		return p.command.Kill()
	}
	p.network.Kill()
	return p.cancelAndWait()
}

func (p *Process) cancelAndWait() error {
	p.cancel()
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("the deployer did not end within %s", p.timeout)
	}
}
