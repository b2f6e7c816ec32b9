// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"os/exec"
	"testing"
	"time"
)

func TestTail(t *testing.T) {
	var all bytes.Buffer
	end := NewTail(100, &all)
	for range 200 {
		if n, err := end.Write([]byte("ab")); n != 2 || err != nil {
			t.Fatalf("Write(...): %d, %v", n, err)
		}
	}
	if got := end.String(); len(got) != 100 || got[len(got)-2:] != "ab" {
		t.Errorf("String(): want the last 100 bytes, got %d", len(got))
	}
	if all.Len() != 400 {
		t.Errorf("%d bytes were passed on, want 400", all.Len())
	}
}

func TestProcess(t *testing.T) {
	run := func(t *testing.T, script string) *Process {
		t.Helper()
		p, err := Start(exec.Command("sh", "-c", script), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Kill() })
		return p
	}
	ended := func(t *testing.T, p *Process) {
		t.Helper()
		select {
		case <-p.Done:
		case <-time.After(30 * time.Second):
			t.Fatal("the process still runs")
		}
	}
	t.Run("the error contains the last lines of the output", func(t *testing.T) {
		p := run(t, "echo first; echo last >&2")
		ended(t, p)
		if got := p.LastLine(); got != "last" {
			t.Errorf("LastWords() = %q", got)
		}
		if err := p.Stop(); err != nil {
			t.Errorf("Stop() of a process that has ended: %v", err)
		}
	})
	for name, end := range map[string]func(*Process) error{"stop": (*Process).Stop, "kill": (*Process).Kill} {
		t.Run(name, func(t *testing.T) {
			p := run(t, "sleep 60")
			if p.PID() <= 0 {
				t.Errorf("PID() = %d", p.PID())
			}
			if err := end(p); err != nil {
				t.Fatal(err)
			}
			ended(t, p)
		})
	}
	t.Run("the error names a missing program", func(t *testing.T) {
		if _, err := Start(exec.Command("/does/not/exist"), nil); err == nil {
			t.Error("want an error")
		}
	})
}
