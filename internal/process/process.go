// SPDX-License-Identifier: Apache-2.0

// Package process starts programs and stops them when this process ends. It keeps the last output of each program,
// which can explain why the program ended.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long Stop waits for a process to end before it kills the process. It is long because the machine
// may be under load.
const stopTimeout = 3 * time.Minute

// outputDelay limits how long the output is read after the process has ended. Without a limit, children of the process
// could keep the output open.
const outputDelay = 2 * time.Second

// maxTail is how many bytes at the end of the output of a process are kept.
const maxTail = 8 << 10

// Process is a running program. Its methods are safe for concurrent use.
type Process struct {
	// Done is closed when the process has ended.
	Done <-chan struct{}

	cmd  *exec.Cmd
	tail *Tail
	err  error // valid after Done is closed
}

// Start starts cmd as the leader of a process group. Unless cmd.Stdout or cmd.Stderr is set, the output of the process
// is written to `logs`, which may be nil. On Linux, the kernel kills the started process when the calling process ends.
func Start(cmd *exec.Cmd, logs io.Writer) (*Process, error) {
	done := make(chan struct{})
	p := &Process{Done: done, cmd: cmd, tail: NewTail(maxTail, logs)}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = p.tail, p.tail
	}
	setProcessGroup(cmd)
	cmd.WaitDelay = outputDelay
	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that started the child ends, so the thread must live as long as the
		// child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
		close(done)
	}()
	if err := <-started; err != nil {
		return nil, err // the error contains the path
	}
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Err waits for the end of the process, and returns an error unless the process ended with code 0.
func (p *Process) Err() error {
	<-p.Done
	return p.err
}

// Stop calls StopWithin with a timeout of three minutes.
func (p *Process) Stop() error { return p.StopWithin(stopTimeout) }

// StopWithin asks the process and its children to end. If the process has not ended after the timeout, StopWithin kills
// the process and its children, and returns an error. It does nothing if the process has already ended.
func (p *Process) StopWithin(timeout time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.Done:
		return nil
	case <-time.After(timeout):
	}
	return errors.Join(fmt.Errorf("stop %s: it did not end within %s", p.name(), timeout), p.Kill())
}

// Kill ends the process and its children without giving them a chance to clean up. It returns when the process has
// ended.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.Done
	return nil
}

func (p *Process) signal(s syscall.Signal) error {
	select {
	case <-p.Done:
		return nil
	default:
	}
	if err := signalGroup(p.cmd, s); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send the signal %q to %s: %w", s.String(), p.name(), err)
	}
	return nil
}

// LastLine returns the last line that the process wrote.
func (p *Process) LastLine() string {
	lines := strings.Split(p.tail.String(), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func (p *Process) name() string { return filepath.Base(p.cmd.Path) }
