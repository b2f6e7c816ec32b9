// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// NewReport returns the report for a package. The parameter `tests` contains the names of the passed tests, as go test
// prints them. The parameter `specs` contains the passed Ginkgo specs: for each spec, the texts of its containers and
// then its own text. If a Go test contains an ID in its name, the proof has the name of the test function. If a Ginkgo
// text contains an ID, the name of the proof consists of the texts of its containers and this text. Proofs do not
// contain the names of subtests, because there are hundreds of them and some contain values.
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

// Write writes the report to a file in dir. It replaces an earlier report of the same package.
func (r Report) Write(dir string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, url.PathEscape(r.Package)+".json"), data, 0o644)
}

// Collect reads the reports in a directory. It returns an error if a report cannot be read or if there is none.
func Collect(dir string) ([]Report, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no reports of tests in %s", dir)
	}
	var out []Report
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read report: %w", err)
		}
		var r Report
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("read report %s: %w", path, err)
		}
		out = append(out, r)
	}
	return out, nil
}
