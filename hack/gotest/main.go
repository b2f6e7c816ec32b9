// SPDX-License-Identifier: Apache-2.0

// Command gotest runs `go test -json` with its arguments, prints the output of failed tests, and ends with one line:
//
//	812 passed, 0 failed, 0 skipped
//
// A test that does not run proves nothing. Therefore, unlike go test, the command fails if a test was skipped, if a
// Ginkgo spec was skipped or pending, or if no test ran.
//
// If the first arguments are `-reports dir`, the command writes a report to dir for each package whose tests passed.
// The report lists the tests that prove a promise (see hack/internal/evidence). An existing report for the package is
// replaced.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/deployerkit/deployerkit/internal/heartbeat"
)

func main() {
	if len(os.Args) > 3 && os.Args[1] == withReport {
		fmt.Fprintln(os.Stderr, "gotest:", execWithReport(os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
	signal.Ignore(os.Interrupt) // go test also receives the signal and ends; the summary then shows the results so far
	ok, err := run(os.Stdout, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

func run(w io.Writer, args []string) (bool, error) {
	r := &reporter{}
	flags := []string{"test", "-json"}
	if len(args) > 1 && args[0] == "-reports" {
		var err error
		if r, err = newReporter(args[1], args[2:]); err != nil {
			return false, err
		}
		defer os.RemoveAll(r.specs) //nolint:errcheck // the files are temporary
		flags, args = append(flags, "-exec="+r.wrapper), args[2:]
	}
	cmd := exec.Command("go", append(flags, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("run go test: %w", err)
	}
	s := newSummary(w, r.write)
	progress := heartbeat.Start(w, os.Stderr, func(elapsed time.Duration) string {
		return fmt.Sprintf("gotest: %d packages done, %s", s.ended.Load(), elapsed)
	})
	defer progress.Stop()
	s.w = progress
	if err := s.read(out); err != nil {
		return false, err
	}
	waitErr := cmd.Wait()
	s.finish()
	return waitErr == nil && s.ok() && r.err == nil, r.err
}
