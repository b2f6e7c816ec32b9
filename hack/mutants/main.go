// SPDX-License-Identifier: Apache-2.0

// Command mutants tests the tests. It puts one deliberate fault after the other into the code and prints which test
// fails.
//
//	go run ./hack/mutants [regexp]
//	go run ./hack/mutants -record name [-fault sentence] [-tests arguments] [path...]
//
// The faults are the entries of the archives *.txtar beside this file, one archive per top directory. An entry begins
// with lines that describe the fault and one line with the arguments of go test, followed by a patch:
//
//	-- extension-priority-shared --
//	# An immediate requeue keeps the delay of another hook [L20].
//	# tests: ./extension
//	--- a/extension/aggregate.go
//
// With -record the program writes the unstaged changes of the work tree to the entry instead. An existing mutant keeps
// its description and its tests.
//
// A mutant must build, and a test must fail. The work tree is not changed: go test gets the changed files as an
// overlay, so all of them share the build cache. The last line is the summary; the exit code is 1 unless all mutants
// were caught:
//
//	64 mutants: 64 caught, 0 survived, 0 broken
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/deployerkit/deployerkit/internal/heartbeat"
)

const archives = "hack/mutants"

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

// run must be called in the root of the repository.
func run(ctx context.Context, args []string) (bool, error) {
	var r recording
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.StringVar(&r.name, "record", "", "write the changes of the work tree into the mutant of this `name`")
	flags.StringVar(&r.fault, "fault", "", "what the recorded mutant breaks, as a `sentence`")
	flags.StringVar(&r.tests, "tests", "", "the `arguments` of go test for the recorded mutant")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return true, nil
	case err != nil:
		return false, err
	case r.name == "":
		return try(ctx, append(flags.Args(), "")[0])
	}
	r.paths = flags.Args()
	m, err := record(ctx, ".", archives, r)
	if err != nil {
		return false, err
	}
	fmt.Printf("recorded %s in %s; go test %s\n", m.name, m.archiveOf(archives), m.arguments)
	return true, nil
}

// try runs the tests of the mutants whose names match. It reports whether all were caught.
func try(ctx context.Context, pattern string) (bool, error) {
	selected, err := regexp.Compile(pattern)
	if err != nil {
		return false, fmt.Errorf("select mutants: %w", err)
	}
	mutants, err := load(archives, selected)
	if err != nil {
		return false, err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // nothing of value is left there
	r := &runner{root: ".", scratch: scratch, tests: goTest{}}
	out := heartbeat.Start(os.Stdout, os.Stderr, r.progress)
	defer out.Stop()
	r.out = out
	return r.tryAll(ctx, mutants)
}
