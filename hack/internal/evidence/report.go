// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/deployerkit/deployerkit/hack/internal/testjson"
)

// Proof names a test that proves a promise.
type Proof struct {
	ID      string
	Package string // relative to the root of the repository
	Test    string
}

// Report contains the proofs from the passed tests of a package.
type Report struct {
	Package string
	Proofs  []Proof
}

// module is the prefix of the import paths of this repository.
const module = "github.com/deployerkit/deployerkit/"

// naming matches one or more IDs in brackets, for example [L1] or [L1, C2]. In the output of go test, spaces are
// replaced by underscores.
var naming = regexp.MustCompile(`\[([A-Z][a-z]?[0-9]+(?:,[ _]?[A-Z][a-z]?[0-9]+)*)\]`)

// NewReport returns the report for a package from the names of the passed tests, as go test prints them, and from the
// passed Ginkgo specs, which are given as lists: for each spec, the texts of its containers and then its own text. If a
// Go test contains an ID in its name, the proof has the name of the test function. If a Ginkgo text contains an ID, the
// name of the proof consists of the texts of its containers and this text. Proofs do not contain the names of subtests,
// because there are hundreds of them and some contain values.
func NewReport(importPath string, tests []string, specs [][]string) Report {
	r := Report{Package: strings.TrimPrefix(importPath, module)}
	for _, test := range tests {
		function, _, _ := strings.Cut(test, "/")
		r.add(test, function)
	}
	for _, texts := range specs {
		for i, text := range texts {
			sentence := naming.ReplaceAllString(strings.Join(texts[:i+1], " "), "")
			r.add(text, strings.Join(strings.Fields(sentence), " "))
		}
	}
	slices.SortFunc(r.Proofs, compare)
	r.Proofs = slices.Compact(r.Proofs)
	return r
}

// add adds a proof for each ID in a text.
func (r *Report) add(text, test string) {
	for _, found := range naming.FindAllStringSubmatch(text, -1) {
		for id := range strings.SplitSeq(found[1], ",") {
			r.Proofs = append(r.Proofs, Proof{ID: strings.Trim(id, " _"), Package: r.Package, Test: test})
		}
	}
}

// GinkgoReport is the name of the JSON report that Ginkgo writes to the directory of a package.
const GinkgoReport = "ginkgo.json"

// ReadReports returns a report for each package whose tests passed. It reads the events of `go test -json` from the
// files *.json in dir. If several files contain a package, the newest one counts. It reads the specs of a package from
// its GinkgoReport in the directory of the package below root. The result `skipped` contains the tests and specs that
// did not run. ReadReports returns an error if a file cannot be read or if no test passed.
func ReadReports(root, dir string) (reports []Report, skipped []string, err error) {
	names, err := eventFiles(dir)
	if err != nil {
		return nil, nil, err
	}
	results := map[string]*result{}
	for _, name := range names {
		latest, err := readEvents(name)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(results, latest)
	}
	for _, pkg := range slices.Sorted(maps.Keys(results)) {
		r := results[pkg]
		specs, err := readSpecs(root, pkg)
		if err != nil {
			return nil, nil, err
		}
		for _, test := range append(r.skipped, specs.Skipped...) {
			skipped = append(skipped, pkg+": "+test)
		}
		if r.ok {
			reports = append(reports, NewReport(pkg, r.passed, specs.Passed))
		}
	}
	if len(reports) == 0 {
		return nil, nil, fmt.Errorf("no tests passed according to the files in %s", dir)
	}
	return reports, skipped, nil
}

// readSpecs reads Ginkgo's report for a package. A package without Ginkgo has no report.
func readSpecs(root, pkg string) (testjson.SpecResults, error) {
	specs, err := testjson.ReadSpecs(filepath.Join(root, strings.TrimPrefix(pkg, module), GinkgoReport))
	if errors.Is(err, fs.ErrNotExist) {
		return testjson.SpecResults{}, nil
	}
	return specs, err
}

// eventFiles returns the paths of the JSON files in a directory, oldest first.
func eventFiles(dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	times := map[string]time.Time{}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		times[name] = info.ModTime()
	}
	slices.SortFunc(names, func(a, b string) int { return times[a].Compare(times[b]) })
	return names, nil
}

// result contains the results of the tests of a package.
type result struct {
	passed, failed, skipped []string
	ok, broken              bool // the package passed, or it failed
}

// readEvents reads a file with events of `go test -json`.
func readEvents(name string) (map[string]*result, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing is written
	results := map[string]*result{}
	err = testjson.Read(file, func(e testjson.Event) {
		if results[e.Package] == nil && e.Package != "" {
			results[e.Package] = &result{}
		}
		if r := results[e.Package]; r != nil {
			r.add(e)
		}
	}, func(string) {})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return results, nil
}

// add adds the result that an event contains. A package without tests does not count as skipped.
func (r *result) add(e testjson.Event) {
	switch {
	case e.Test == "" && e.Action == "pass":
		r.ok = true
	case e.Test == "" && e.Action == "fail":
		r.broken = true
	case e.Test != "" && e.Action == "fail":
		r.failed = append(r.failed, e.Test)
	case e.Test != "" && e.Action == "pass":
		r.passed = append(r.passed, e.Test)
	case e.Test != "" && e.Action == "skip":
		r.skipped = append(r.skipped, e.Test)
	}
}
