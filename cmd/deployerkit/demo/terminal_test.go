// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTerminalWithoutTerminal(t *testing.T) {
	out := &bytes.Buffer{}
	s := newTerminal(out)
	s.show([]row{{name: "a", phase: "Init", job: "job-1"}})
	s.show([]row{{name: "a", phase: "Init", job: "job-1", hooks: 7, event: "only this changed"}})
	s.printf("a line")
	s.show([]row{{name: "a", phase: "Succeeded", job: "job-1, done", hooks: 9, event: "done"}, {name: "b", phase: "(new)"}})
	want := []string{
		"    a            Init            job-1                  0",
		"a line",
		"    a            Succeeded       job-1, done            9  done",
		"    b            (new)                                  0",
		"",
	}
	if diff := cmp.Diff(want, strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("lines: -want, +got:\n%s", diff)
	}
}

func TestTerminalOnTerminal(t *testing.T) {
	out := &bytes.Buffer{}
	s := newTerminal(out)
	s.size = func() (int, int) { return 34, 25 }
	s.show([]row{{name: "a", phase: "Init", event: "long enough to be cut"}})
	s.printf("a line")
	s.show([]row{{name: "a", phase: "Succeeded"}})
	s.leave()
	s.printf("below")
	want := []string{
		"", "NAME         PHASE           JOB…", "a            Init               …",
		"\x1b[3A\x1b[Ja line",
		"", "NAME         PHASE           JOB…", "a            Init               …",
		"\x1b[3A\x1b[J", "NAME         PHASE           JOB…", "a            Succeeded          …",
		"below", "",
	}
	if diff := cmp.Diff(want, strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("terminal: -want, +got:\n%s", diff)
	}
}

func TestTerminalFitsALowTerminal(t *testing.T) {
	out := &bytes.Buffer{}
	s := newTerminal(out)
	s.size = func() (int, int) { return 80, 3 }
	s.show([]row{{name: "a"}, {name: "b"}, {name: "c"}})
	if lines := strings.Count(out.String(), "\n"); lines != 2 || s.drawn != 2 {
		t.Errorf("a terminal of 3 lines has room for 2 and the cursor, got %d (%d to erase)", lines, s.drawn)
	}
}
