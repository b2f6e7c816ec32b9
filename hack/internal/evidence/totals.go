// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Totals counts the results of tests and specs.
type Totals struct {
	Passed, Failed, Skipped int
	// Failures contains the names of the failed tests and specs, and of the packages that failed without a failed test
	// because of a build error, a panic, a data race or the time limit.
	Failures []string
}

// String formats the totals as one line, without the failures.
func (t Totals) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.Passed, t.Failed, t.Skipped)
}

// ReadTotals counts the results in the files *.json in dirs and in the reports of Ginkgo. A test that ran several times
// counts once, with its worst result. A test that has subtests does not count, unless it failed without a failed
// subtest.
func ReadTotals(root string, dirs ...string) (Totals, error) {
	results, err := readWorstResults(dirs)
	if err != nil {
		return Totals{}, err
	}
	var t Totals
	for _, pkg := range slices.Sorted(maps.Keys(results)) {
		r := results[pkg]
		specs, err := readSpecs(root, pkg)
		if err != nil {
			return Totals{}, err
		}
		failures := append(filterLeaves(r.failed, r.failed), specs.Failed...)
		if r.broken && len(failures) == 0 {
			failures = []string{"the package failed without a failed test"}
		}
		all := slices.Concat(r.passed, r.failed, r.skipped)
		t.Passed += len(filterLeaves(r.passed, all)) + len(specs.Passed)
		t.Skipped += len(filterLeaves(r.skipped, all)) + len(specs.Skipped)
		t.Failed += len(failures)
		for _, name := range failures {
			t.Failures = append(t.Failures, strings.TrimPrefix(pkg, module)+": "+name)
		}
	}
	return t, nil
}

// readWorstResults reads the events in the files *.json in dirs. It returns the results for each package. Each test
// occurs in one of the lists: it failed if it failed once, and it passed if it passed once.
func readWorstResults(dirs []string) (map[string]*result, error) {
	all := map[string]*result{}
	for _, dir := range dirs {
		names, err := eventFiles(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			results, err := readEvents(name)
			if err != nil {
				return nil, err
			}
			for pkg, r := range results {
				if all[pkg] == nil {
					all[pkg] = &result{}
				}
				all[pkg].merge(*r)
			}
		}
	}
	return all, nil
}

func (r *result) merge(other result) {
	r.failed = unique(slices.Concat(r.failed, other.failed), nil)
	r.passed = unique(slices.Concat(r.passed, other.passed), r.failed)
	r.skipped = unique(slices.Concat(r.skipped, other.skipped), slices.Concat(r.failed, r.passed))
	r.ok, r.broken = r.ok || other.ok, r.broken || other.broken
}

// unique returns the sorted names that are not in `without`, each once.
func unique(names, without []string) []string {
	slices.Sort(names)
	excluded := map[string]bool{}
	for _, name := range without {
		excluded[name] = true
	}
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return excluded[name] })
}

// filterLeaves returns the names of those tests that have no subtest in `all`.
func filterLeaves(tests, all []string) []string {
	parents := map[string]bool{}
	for _, name := range all {
		for i, c := range name {
			if c == '/' {
				parents[name[:i]] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(tests), func(name string) bool { return parents[name] })
}
