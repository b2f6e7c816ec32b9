// SPDX-License-Identifier: Apache-2.0

// Command evidence compares the results of the last test run with docs/behaviours.md and docs/evidence.txt, or updates
// docs/evidence.txt:
//
//	go -C hack run ./evidence check EVENTS
//	go -C hack run ./evidence update EVENTS
//	go -C hack run ./evidence count EVENTS...
//
// EVENTS is a directory with the output of `go test -json`. The subcommand `check` needs the results of all tests. It
// fails if a test was skipped, if no test of a promise ran and passed, if a test has the ID of an unknown promise in
// its name, or if docs/evidence.txt differs from the results. The subcommand `update` replaces the entries of those
// packages whose tests ran and passed. The subcommand `count` prints the failures, and how many tests passed, failed
// and were skipped. Run the command in the directory hack.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployerkit/deployerkit/hack/internal/evidence"
)

const (
	root         = ".."
	promisesFile = root + "/docs/behaviours.md"
	evidenceFile = root + "/docs/evidence.txt"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "evidence:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 1 && args[0] == "count" {
		return printTotals(args[1:])
	}
	if len(args) != 2 || args[0] != "check" && args[0] != "update" {
		return errors.New("want `check`, `update` or `count`, and the directory of the events")
	}
	doc, err := os.ReadFile(promisesFile)
	if err != nil {
		return err
	}
	promises, err := evidence.ParsePromises(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", promisesFile, err)
	}
	reports, skipped, err := evidence.ReadReports(root, args[1])
	if err != nil {
		return err
	}
	old, err := os.ReadFile(evidenceFile)
	if err != nil {
		return err
	}
	proofs, err := evidence.Parse(old)
	if err != nil {
		return fmt.Errorf("%s: %w", evidenceFile, err)
	}
	if args[0] == "check" {
		if len(skipped) > 0 {
			return errors.New("tests were skipped:\n\t" + strings.Join(skipped, "\n\t"))
		}
		return check(promises, proofs, evidence.Update(nil, reports))
	}
	proofs = slices.DeleteFunc(evidence.Update(proofs, reports), isGone)
	return os.WriteFile(evidenceFile, evidence.Format(proofs), 0o644)
}

// printTotals prints the failures and the totals of the events in directories.
func printTotals(dirs []string) error {
	totals, err := evidence.ReadTotals(root, dirs...)
	if err != nil {
		return err
	}
	for _, failure := range totals.Failures {
		fmt.Println("failed:", failure)
	}
	fmt.Println(totals)
	return nil
}

// isGone reports whether the package that contains the proof no longer has tests.
func isGone(p evidence.Proof) bool {
	tests, err := filepath.Glob(filepath.Join(root, p.Package, "*_test.go"))
	return err != nil || len(tests) == 0
}

// check returns an error if the reported proofs do not match the promises, or if they differ from the proofs in the
// evidence file.
func check(promises []string, file, reported []evidence.Proof) error {
	faults := evidence.Check(promises, reported)
	for _, p := range evidence.ListMissing(file, reported) {
		faults = append(faults, fmt.Sprintf("%s does not contain %s: %s in %s", evidenceFile, p.ID, p.Test, p.Package))
	}
	for _, p := range evidence.ListMissing(reported, file) {
		faults = append(faults, fmt.Sprintf("%s contains %s: %s in %s, but this test did not run and pass", evidenceFile, p.ID, p.Test, p.Package))
	}
	if len(faults) > 0 {
		return errors.New("the promises, the tests and docs/evidence.txt do not match ('make evidence' updates the file):\n\t" + strings.Join(faults, "\n\t"))
	}
	fmt.Printf("all %d promises are proved by tests that ran and passed\n", len(promises))
	return nil
}
