// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action      string
	Package     string
	ImportPath  string // instead of Package in build output
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// counts of tests or specs.
type counts struct{ passed, failed, skipped int }

func (c *counts) add(o counts) {
	c.passed, c.failed, c.skipped = c.passed+o.passed, c.failed+o.failed, c.skipped+o.skipped
}

// key names a test, or a package when test is empty.
type key struct{ pkg, test string }

// summary counts, and keeps the output of whatever did not end well.
type summary struct {
	w      io.Writer
	total  counts
	broken []string // packages that failed without a failed test: no build, a panic, a data race, a time limit
	output map[key][]string
	specs  map[key]counts      // Ginkgo: the specs that one test function ran
	failed map[string]bool     // packages with a failed test
	kids   map[key]bool        // tests that have subtests: they are counted by those
	skips  map[string][]string // names of skipped tests by package
}

func newSummary(w io.Writer) *summary {
	return &summary{
		w: w, output: map[key][]string{}, specs: map[key]counts{},
		failed: map[string]bool{}, kids: map[key]bool{}, skips: map[string][]string{},
	}
}

// read takes all events; lines that are none are shown as they are.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				s.take(e)
			} else {
				fmt.Fprint(s.w, string(line))
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("read go test's output: %w", err)
		}
	}
}

func (s *summary) take(e event) {
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
		if c, ok := ginkgoCounts(e.Output); ok {
			total := s.specs[k]
			total.add(c)
			s.specs[k] = total
		}
	case "pass", "fail", "skip":
		s.end(k, e)
		delete(s.output, k)
	}
}

func (s *summary) end(k key, e event) {
	if k.test == "" {
		s.endPackage(e)
		return
	}
	bad := e.Action != "pass"
	if c, ok := s.specs[k]; ok {
		if e.Action == "fail" && c.failed == 0 {
			c.failed = 1 // outside of the specs: BeforeSuite, for one
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

// endPackage prints one line per package. A package that has no tests is skipped by go test; that is no skipped test.
func (s *summary) endPackage(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.w, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		if !s.failed[e.Package] || e.FailedBuild != "" {
			s.broken = append(s.broken, e.Package)
			s.showUnfinished(e.Package)
		}
		fmt.Fprint(s.w, strings.Join(s.output[key{pkg: e.Package}], ""))
		fmt.Fprintf(s.w, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	}
}

// showUnfinished prints what tests said that never ended, because their process did.
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

// ok tells whether everything that there is ran and passed.
func (s *summary) ok() bool {
	return s.total.passed > 0 && s.total.failed == 0 && s.total.skipped == 0 && len(s.broken) == 0
}

// finish prints what must not be overlooked, and the totals.
func (s *summary) finish() {
	for _, pkg := range sortedKeys(s.skips) {
		fmt.Fprintf(s.w, "skipped in %s: %s\n", pkg, strings.Join(s.skips[pkg], ", "))
	}
	for _, pkg := range s.broken {
		fmt.Fprintf(s.w, "broken (no build, panic, race or time limit): %s\n", pkg)
	}
	if s.total == (counts{}) {
		fmt.Fprintln(s.w, "no test ran")
	}
	fmt.Fprintf(s.w, "%d passed, %d failed, %d skipped\n", s.total.passed, s.total.failed+len(s.broken), s.total.skipped)
}

var (
	ansi          = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	ginkgoSummary = regexp.MustCompile(`-- (\d+) Passed \| (\d+) Failed \| (\d+) Pending \| (\d+) Skipped`)
)

// ginkgoCounts reads the line that ends a Ginkgo suite.
func ginkgoCounts(line string) (counts, bool) {
	m := ginkgoSummary.FindStringSubmatch(ansi.ReplaceAllString(line, ""))
	if m == nil {
		return counts{}, false
	}
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // the pattern lets digits through only
	}
	return counts{passed: n[0], failed: n[1], skipped: n[2] + n[3]}, true
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
