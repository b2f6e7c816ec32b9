// SPDX-License-Identifier: Apache-2.0

// Command mutants tries the tests: it puts one deliberate fault after the other into the code and tells which test notices.
//
//	go run ./hack/mutants [regexp]
//
// The faults are the files *.patch beside this one. Each begins with lines that say what is broken, and one that names
// the arguments of go test:
//
//	# An immediate requeue keeps the delay of another hook [L20].
//	# tests: ./extension
//
// A mutant must build, and a test must fail. The work tree is not touched: go test is given the changed files as an
// overlay, so the build cache serves all of them. It ends with one line, and with status 1 unless all were caught:
//
//	64 mutants: 64 caught, 0 survived, 0 broken
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

const patches = "hack/mutants"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if !ok || err != nil {
		os.Exit(1) //nolint:gocritic // the deferred stop has nothing left to do
	}
}

// run is called in the root of the repository.
func run(ctx context.Context, args []string) (bool, error) {
	selected, err := regexp.Compile(append(args, "")[0])
	if err != nil {
		return false, fmt.Errorf("select mutants: %w", err)
	}
	mutants, err := load(patches, selected)
	if err != nil {
		return false, err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // nothing of value is left there
	l := &lab{root: ".", scratch: scratch, out: os.Stdout, tests: goTest{}}
	return l.tryAll(ctx, mutants)
}
