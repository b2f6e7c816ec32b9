// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// launched runs a script in a shell and waits until the script writes "up". The returned reader reads the output of the
// shell and of its child processes. The reader returns io.EOF when all these processes have ended.
func launched(t *testing.T, script string) (*Process, *bufio.Reader) {
	t.Helper()
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	command := exec.Command("sh", "-c", script)
	command.Stdout = written
	p, err := Exec(command, io.Discard, 30*time.Second)
	if err := errors.Join(err, written.Close(), read.SetReadDeadline(time.Now().Add(30*time.Second))); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(read)
	if line, err := output.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the child process wrote %q, error %v", line, err)
	}
	return p, output
}

func TestCommandStopsWithItsChildren(t *testing.T) {
	for name, end := range map[string]func(*Process) error{"stop": (*Process).Stop, "kill": (*Process).Kill} {
		t.Run(name, func(t *testing.T) {
			p, output := launched(t, "sh -c 'echo up; exec sleep 600' & wait")
			if err := end(p); err != nil {
				t.Error(err)
			}
			if _, err := output.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("the child process is still running: %v", err)
			}
		})
	}
}

func TestCommandReportsUnexpectedExit(t *testing.T) {
	p, _ := launched(t, "echo up; exit 3")
	<-p.ended
	if err := p.Stop(); err == nil || err.Error() != "the deployer ended unexpectedly: exit status 3" {
		t.Errorf("Stop(): got %v", err)
	}
}

func TestCommandReportsFailedStart(t *testing.T) {
	if _, err := Exec(exec.Command("/does/not/exist"), io.Discard, time.Second); err == nil {
		t.Fatal("Exec(...): want an error")
	}
}

func TestInProcessDeployerStopsWithItsContext(t *testing.T) {
	run := func(ctx context.Context, _ *rest.Config) error {
		<-ctx.Done()
		return nil
	}
	for name, end := range map[string]func(*Process) error{"stop": (*Process).Stop, "kill": (*Process).Kill} {
		p := Start(t.Context(), run, &rest.Config{}, 30*time.Second)
		if err := end(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
