// SPDX-License-Identifier: Apache-2.0

// Package process starts programs that end with this process, and keeps the end of their output to explain why they
// ended.
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

// stopTimeout is how long Stop waits for a process to end by itself. It is long because the machine may be loaded.
const stopTimeout = 3 * time.Minute

// outputDelay is how long the output of a process that has ended is read, because its children may hold it open.
const outputDelay = 2 * time.Second

// keptLog is how many bytes of a process's output are kept to explain its end.
const keptLog = 8 << 10

// Process is a running program. Its methods are safe for concurrent use.
type Process struct {
	// Done is closed when the process has ended.
	Done <-chan struct{}

	cmd  *exec.Cmd
	tail *Tail
	err  error // valid after Done is closed
}

// Start starts cmd as the leader of a process group. logs receives its output unless cmd.Stdout or cmd.Stderr is set;
// it may be nil. If the system supports it, the kernel kills the process when this one ends.
func Start(cmd *exec.Cmd, logs io.Writer) (*Process, error) {
	done := make(chan struct{})
	p := &Process{Done: done, cmd: cmd, tail: NewTail(keptLog, logs)}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = p.tail, p.tail
	}
	ownGroup(cmd)
	cmd.WaitDelay = outputDelay
	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that started it ends, so keep the thread as long as the child.
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
		return nil, err // contains the path
	}
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Err waits for the end of the process, and returns an error unless it ended with code 0.
func (p *Process) Err() error {
	<-p.Done
	return p.err
}

// Stop calls StopWithin with a timeout of three minutes.
func (p *Process) Stop() error { return p.StopWithin(stopTimeout) }

// StopWithin asks the process and its children to end. If the process has not ended after the timeout, StopWithin kills
// them and returns an error. It does nothing if the process has already ended.
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

// Kill ends the process and its children without giving them a chance to clean up, and returns when the process has ended.
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
		return fmt.Errorf("%s to %s: %w", s, p.name(), err)
	}
	return nil
}

// LastWords returns the last line that the process wrote.
func (p *Process) LastWords() string {
	lines := strings.Split(p.tail.String(), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func (p *Process) name() string { return filepath.Base(p.cmd.Path) }
