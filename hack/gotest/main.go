// SPDX-License-Identifier: Apache-2.0

// Command gotest runs `go test -json` with its arguments, shows what failed, and ends with one line:
//
//	812 passed, 0 failed, 0 skipped
//
// Unlike go test it fails when a test was skipped, when a Ginkgo spec was skipped or pending, and when
// nothing ran at all: a test that does not run promises nothing.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
)

func main() {
	signal.Ignore(os.Interrupt) // go test gets it too, and ends; we tell how far it came
	ok, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

func run(args []string) (bool, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("run go test: %w", err)
	}
	s := newSummary(os.Stdout)
	if err := s.read(out); err != nil {
		return false, err
	}
	waitErr := cmd.Wait()
	s.finish()
	return waitErr == nil && s.ok(), nil
}
