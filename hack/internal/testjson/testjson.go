// SPDX-License-Identifier: Apache-2.0

// Package testjson parses the output of `go test -json` and the JSON reports of Ginkgo.
package testjson

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Event is one line of the output of `go test -json` (see `go doc test2json`).
type Event struct {
	Action      string
	Package     string
	ImportPath  string // set instead of Package in the output of a build
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// Read calls `event` for each event, and `other` for each line that is not an event. It returns an error if the reader
// fails.
func Read(r io.Reader, event func(Event), other func(line string)) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e Event
		switch {
		case json.Unmarshal(line, &e) == nil && e.Action != "":
			event(e)
		case len(line) > 0:
			other(string(line))
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read go test's output: %w", err)
		}
	}
}

// Specs contains the number of specs of a Ginkgo suite for each result.
type Specs struct {
	Passed, Failed int
	// Skipped includes pending specs.
	Skipped int
}

var (
	ansi          = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	ginkgoFailure = regexp.MustCompile(`^\s*\[(?:FAIL|PANICKED!|TIMEDOUT|INTERRUPTED)\] (.*\S)\s*$`)
	ginkgoSummary = regexp.MustCompile(`-- (\d+) Passed \| (\d+) Failed \| (\d+) Pending \| (\d+) Skipped`)
)

// ParseSummary parses the summary line at the end of a Ginkgo suite. It returns false if the event contains another
// line.
func (e Event) ParseSummary() (Specs, bool) {
	m := ginkgoSummary.FindStringSubmatch(ansi.ReplaceAllString(e.Output, ""))
	if m == nil {
		return Specs{}, false
	}
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // the pattern matches only digits
	}
	return Specs{Passed: n[0], Failed: n[1], Skipped: n[2] + n[3]}, true
}

// FailedSpec returns the name of a failed spec, or "" if the event does not report a failed spec.
func (e Event) FailedSpec() string {
	m := ginkgoFailure.FindStringSubmatch(ansi.ReplaceAllString(e.Output, ""))
	if m == nil {
		return ""
	}
	return m[1]
}

// SpecResults contains the specs of a Ginkgo report.
type SpecResults struct {
	// Passed contains, for each passed spec, the texts of its containers, outermost first, and then its own text.
	Passed [][]string
	// Failed and Skipped contain all texts of a spec in one string. Skipped includes pending specs.
	Failed, Skipped []string
}

// ReadSpecs reads a JSON report of Ginkgo. It returns an error if the file cannot be read or is not a report.
func ReadSpecs(path string) (SpecResults, error) {
	var out SpecResults
	data, err := os.ReadFile(path)
	if err != nil {
		return out, fmt.Errorf("read Ginkgo report: %w", err)
	}
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeType            string
			LeafNodeText            string
			State                   string
		}
	}
	if err := json.Unmarshal(data, &suites); err != nil {
		return out, fmt.Errorf("read Ginkgo report %s: %w", path, err)
	}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			texts := slices.Concat(spec.ContainerHierarchyTexts, []string{spec.LeafNodeText})
			switch state := strings.ToLower(spec.State); {
			case spec.LeafNodeType != "It":
			case state == "passed":
				out.Passed = append(out.Passed, texts)
			case state == "skipped", state == "pending":
				out.Skipped = append(out.Skipped, strings.Join(texts, " "))
			default:
				out.Failed = append(out.Failed, strings.Join(texts, " "))
			}
		}
	}
	return out, nil
}
