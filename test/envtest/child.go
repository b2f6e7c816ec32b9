// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// keptLog is how much of a process's output is kept to explain its end.
const keptLog = 8 << 10

// child is a process that we started and that shall not outlive us.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	tail *tail
}

// startChild starts a process; logs (nil: nobody) gets what it writes.
func startChild(path string, args []string, logs io.Writer) (*child, error) {
	c := &child{cmd: exec.Command(path, args...), done: make(chan struct{}), tail: &tail{next: logs}}
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.SysProcAttr = c.tail, c.tail, childAttributes()
	started := make(chan error)
	go func() {
		// The kernel ends the child when the thread that started it ends: keep the thread as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // how it ended is told by lastWords
		}
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, err // names the path
	}
	return c, nil
}

// stop asks the process to end, and ends it after processTimeout. Nothing happens if it has ended.
func (c *child) stop() error {
	select {
	case <-c.done:
		return nil
	default:
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", filepath.Base(c.cmd.Path), err)
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(processTimeout):
	}
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", filepath.Base(c.cmd.Path), err)
	}
	<-c.done
	return fmt.Errorf("stop %s: it did not end by itself", filepath.Base(c.cmd.Path))
}

// lastWords is the last line that the process wrote.
func (c *child) lastWords() string {
	lines := strings.Split(strings.TrimSpace(c.tail.String()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// tail keeps the end of what is written to it and hands everything on.
type tail struct {
	next io.Writer

	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if n := len(t.kept) - keptLog; n > 0 {
		t.kept = append([]byte(nil), t.kept[n:]...)
	}
	if t.next == nil {
		return len(p), nil
	}
	return t.next.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
