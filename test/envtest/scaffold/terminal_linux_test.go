// SPDX-License-Identifier: Apache-2.0

package scaffold_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// endLimit is how long a program may take to start or to end on a busy machine.
const endLimit = 5 * time.Minute

// openTerminal returns both ends of a new pseudo-terminal.
func openTerminal(t *testing.T) (outside, inside *os.File) {
	t.Helper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outside.Close() })
	number, err := unix.IoctlGetInt(int(outside.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(outside.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return outside, inside
}

// screen contains the output of a terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) containsText(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.text.Bytes(), []byte(text))
}

// waitUntil waits until done returns true.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	limit, tick := time.After(endLimit), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-limit:
			t.Fatalf("%s: it did not happen within %s", what, endLimit)
		case <-tick.C:
		}
	}
}

// checkRunEnds checks how the ways to start `deployerkit run` end on a terminal. The repository is in dir.
func checkRunEnds(t *testing.T, env []string, dir string, args []string) {
	starts := map[string][]string{"make run": {"make", "run"}, "go tool": append([]string{"go", "tool", "deployerkit"}, args...)}
	ends := map[string]func(outside *os.File, cmd *exec.Cmd) error{
		"Ctrl-C":            func(outside *os.File, _ *exec.Cmd) error { _, err := outside.Write([]byte{3}); return err },
		"SIGTERM":           func(_ *os.File, cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGTERM) },
		"a closed terminal": func(outside *os.File, _ *exec.Cmd) error { return outside.Close() },
	}
	// Programs that nohup starts ignore SIGHUP, and so do the programs that they start, unless they handle it.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for start, command := range starts {
		for name, end := range ends {
			t.Run(start+" leaves no files and processes after "+name+" [F80]", func(t *testing.T) {
				outside, inside := openTerminal(t)
				temporary, output := t.TempDir(), &screen{}
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
				cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "TMPDIR="+temporary)
				cmd.Stdin, cmd.Stdout, cmd.Stderr = inside, inside, inside
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				_ = inside.Close()
				go func() { _, _ = io.Copy(output, outside) }()
				waitUntil(t, "the example succeeds", func() bool { return output.containsText("Succeeded") })
				if err := end(outside, cmd); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
				status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
				bySignal := status.Signaled() && start == "make run" // make ends itself with the signal that it received, which shells show as 130
				if !bySignal && status.ExitStatus() != 0 {
					t.Errorf("the exit code is %d\n%s", status.ExitStatus(), output.text.String())
				}
				if output.containsText("Error 1") {
					t.Errorf("make reports an error:\n%s", output.text.String())
				}
				waitUntil(t, "everything is removed", func() bool {
					left, _ := filepath.Glob(filepath.Join(temporary, "deployerkit-*"))
					return len(left) == 0
				})
			})
		}
	}
}
