// SPDX-License-Identifier: Apache-2.0

// Command mutants tests the tests. It changes the code by one deliberate fault at a time. For each fault, which is
// called a mutant, it prints the test that fails.
//
//	go -C hack run ./mutants [regexp]
//	go -C hack run ./mutants -record name [-fault sentence] [-tests arguments] [path...]
//
// The mutants are the entries of the archives *.txtar in the directory of this file. There is one archive per top-level
// directory. An entry begins with a description of the fault and a line with the arguments of go test. The rest of the
// entry consists of edits. An edit names a package and a declaration (T.M for a method), and contains the lines that it
// removes, adds or only needs in order to be unambiguous:
//
//	-- extension-priority-shared --
//	# An immediate requeue keeps the delay of another hook [L20].
//	# tests: ./extension
//	@@ extension HookResult.add
//	-	if other.Requeue {
//	+	if false {
//
// With -record, the command does not run tests. Instead, it writes the unstaged changes of the work tree to the named
// entry. If the entry exists, its description and its tests change only if the flags set them.
//
// A mutant is caught if its code builds and a test fails. The work tree does not change, because go test receives the
// changed files as an overlay. For the same reason, all mutants share the build cache. The last line of the output is
// the summary. The exit code is 1 unless all mutants were caught:
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

const (
	repository = ".."
	archives   = "mutants"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if !ok || err != nil {
		os.Exit(1) //nolint:gocritic // there is nothing left to stop
	}
}

// run executes the command. It must be called in the directory hack.
func run(ctx context.Context, args []string) (bool, error) {
	var r recording
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.StringVar(&r.name, "record", "", "write the changes of the work tree into the mutant of this `name`")
	flags.StringVar(&r.fault, "fault", "", "a `sentence` that describes the fault of the recorded mutant")
	flags.StringVar(&r.tests, "tests", "", "the `arguments` of go test for the recorded mutant")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return true, nil
	case err != nil:
		return false, err
	case r.name == "":
		return runMutants(ctx, append(flags.Args(), "")[0])
	}
	r.paths = flags.Args()
	m, err := record(ctx, repository, archives, r)
	if err != nil {
		return false, err
	}
	fmt.Printf("recorded %s in %s; go test %s\n", m.name, m.getArchivePath(archives), m.arguments)
	return true, nil
}

// runMutants runs the tests of the mutants whose names match the pattern. It reports whether all these mutants were
// caught.
func runMutants(ctx context.Context, pattern string) (bool, error) {
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
	defer os.RemoveAll(scratch) //nolint:errcheck // the files are temporary
	r := &runner{root: repository, scratch: scratch, tests: goTest{dir: repository}}
	out := heartbeat.Start(os.Stdout, os.Stderr, r.formatProgress)
	defer out.Stop()
	r.out = out
	return r.tryAll(ctx, mutants)
}
