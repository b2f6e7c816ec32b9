// SPDX-License-Identifier: Apache-2.0

package conformance

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

// launched starts a shell that waits for a child of its own. What both write can be read: it ends when both have ended.
func launched(t *testing.T, script string) (*process, *bufio.Reader) {
	t.Helper()
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	s := Subject{
		Bounds: Bounds{Stop: 30 * time.Second},
		Command: func(string) *exec.Cmd {
			command := exec.Command("sh", "-c", script)
			command.Stdout = written
			return command
		},
	}
	p, err := launch(t.Context(), s, &rest.Config{}, "")
	if err := errors.Join(err, written.Close(), read.SetReadDeadline(time.Now().Add(30*time.Second))); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(read)
	if line, err := output.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return p, output
}

func TestACommandEndsWithItsChildren(t *testing.T) {
	for name, end := range map[string]func(*process) error{"stop": (*process).stop, "kill": (*process).kill} {
		t.Run(name, func(t *testing.T) {
			p, output := launched(t, "sh -c 'echo up; exec sleep 600' & wait")
			if err := end(p); err != nil {
				t.Error(err)
			}
			if _, err := output.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("the child lives: %v", err)
			}
		})
	}
}

func TestACommandThatEndsByItselfIsAnError(t *testing.T) {
	p, _ := launched(t, "echo up; exit 3")
	<-p.ended
	if err := p.stop(); err == nil || err.Error() != "the deployer ended by itself: exit status 3" {
		t.Errorf("stop(): got %v", err)
	}
}

func TestACommandThatCannotBeStarted(t *testing.T) {
	s := Subject{Command: func(string) *exec.Cmd { return exec.Command("/does/not/exist") }}
	p, err := launch(t.Context(), s, &rest.Config{}, "")
	if err == nil {
		t.Fatal("launch(...): want an error")
	}
	<-p.ended
}

func TestADeployerInProcessEndsWithItsContext(t *testing.T) {
	s := Subject{Bounds: Bounds{Stop: 30 * time.Second}, Start: func(ctx context.Context, _ *rest.Config) error {
		<-ctx.Done()
		return nil
	}}
	for name, end := range map[string]func(*process) error{"stop": (*process).stop, "kill": (*process).kill} {
		p, err := launch(t.Context(), s, &rest.Config{}, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := end(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
