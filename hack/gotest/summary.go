// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/deployerkit/deployerkit/hack/internal/testjson"
)

// counts contains numbers of tests or specs.
type counts struct{ passed, failed, skipped int }

func (c *counts) add(o counts) {
	c.passed, c.failed, c.skipped = c.passed+o.passed, c.failed+o.failed, c.skipped+o.skipped
}

// key identifies a test or, if the field `test` is empty, a package.
type key struct{ pkg, test string }

// summary counts the results of the tests. It also collects the output of tests and packages until they have passed.
type summary struct {
	w      io.Writer
	total  counts
	broken []string // packages that failed without a failed test, because of a build error, a panic, a data race or the time limit
	output map[key][]string
	specs  map[key]counts      // the results of the Ginkgo specs of each test function
	failed map[string]bool     // packages with a failed test
	kids   map[key]bool        // tests that have subtests; only the subtests are counted
	skips  map[string][]string // names of skipped tests by package
	passed map[string][]string // names of passed tests by package
	report func(pkg string, passed []string)
	ended  atomic.Int64 // number of packages that have ended; read concurrently
}

// newSummary returns a summary that calls the function `report` for each package whose tests passed.
func newSummary(w io.Writer, report func(pkg string, passed []string)) *summary {
	return &summary{
		w: w, report: report, passed: map[string][]string{}, output: map[key][]string{}, specs: map[key]counts{},
		failed: map[string]bool{}, kids: map[key]bool{}, skips: map[string][]string{},
	}
}

// read processes all events. It prints lines that are not events unchanged.
func (s *summary) read(r io.Reader) error {
	return testjson.Read(r, s.take, func(line string) { fmt.Fprint(s.w, line) })
}

func (s *summary) take(e testjson.Event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.w, e.Output)
	case "run":
		if parent, _, ok := cutLast(e.Test, "/"); ok {
			s.kids[key{e.Package, parent}] = true
		}
	case "output":
		s.output[k] = append(s.output[k], e.Output)
		if c, ok := e.Specs(); ok {
			total := s.specs[k]
			total.add(counts{c.Passed, c.Failed, c.Skipped})
			s.specs[k] = total
		}
	case "pass", "fail", "skip":
		s.end(k, e)
		delete(s.output, k)
	}
}

func (s *summary) end(k key, e testjson.Event) {
	if k.test == "" {
		s.endPackage(e)
		return
	}
	if e.Action == "pass" {
		s.passed[k.pkg] = append(s.passed[k.pkg], k.test)
	}
	bad := e.Action != "pass"
	if c, ok := s.specs[k]; ok {
		if e.Action == "fail" && c.failed == 0 {
			c.failed = 1 // the failure is not in a spec but, for example, in BeforeSuite
		}
		s.total.add(c)
		bad = bad || c.skipped > 0
		if c.skipped > 0 {
			s.skips[k.pkg] = append(s.skips[k.pkg], fmt.Sprintf("%s (%d specs)", k.test, c.skipped))
		}
	} else if !s.kids[k] || (e.Action == "fail" && !s.failed[k.pkg]) {
		s.count(k, e.Action)
	}
	s.failed[k.pkg] = s.failed[k.pkg] || e.Action == "fail"
	if bad {
		fmt.Fprint(s.w, strings.Join(s.output[k], ""))
	}
}

func (s *summary) count(k key, action string) {
	switch action {
	case "pass":
		s.total.passed++
	case "fail":
		s.total.failed++
	case "skip":
		s.total.skipped++
		s.skips[k.pkg] = append(s.skips[k.pkg], k.test)
	}
}

// endPackage prints a line for a package. A package without tests does not count as skipped, although go test reports
// it as skipped.
func (s *summary) endPackage(e testjson.Event) {
	s.ended.Add(1)
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.w, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
		s.report(e.Package, s.passed[e.Package])
	case "fail":
		if !s.failed[e.Package] || e.FailedBuild != "" {
			s.broken = append(s.broken, e.Package)
			s.showUnfinished(e.Package)
		}
		fmt.Fprint(s.w, strings.Join(s.output[key{pkg: e.Package}], ""))
		fmt.Fprintf(s.w, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	}
}

// showUnfinished prints the output of the tests that did not end, for example because of a panic.
func (s *summary) showUnfinished(pkg string) {
	var names []string
	for k := range s.output {
		if k.pkg == pkg && k.test != "" {
			names = append(names, k.test)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprint(s.w, strings.Join(s.output[key{pkg, name}], ""))
	}
}

// ok reports whether all tests ran and passed.
func (s *summary) ok() bool {
	return s.total.passed > 0 && s.total.failed == 0 && s.total.skipped == 0 && len(s.broken) == 0
}

// finish prints the failed and skipped tests, and the totals.
func (s *summary) finish() {
	for _, pkg := range sortedKeys(s.skips) {
		fmt.Fprintf(s.w, "skipped in %s: %s\n", pkg, strings.Join(s.skips[pkg], ", "))
	}
	for _, pkg := range s.broken {
		fmt.Fprintf(s.w, "broken (build error, panic, data race or time limit): %s\n", pkg)
	}
	if s.total == (counts{}) {
		fmt.Fprintln(s.w, "no test ran")
	}
	fmt.Fprintf(s.w, "%d passed, %d failed, %d skipped\n", s.total.passed, s.total.failed+len(s.broken), s.total.skipped)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
