// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// Check is one promise of the contract that can be observed from outside. It is pure data. [Checks] returns all of
// them.
type Check struct {
	// Name is the name of the check in exceptions and expectations.
	Name string
	// Rows are the rows of the specification that it covers, in brackets, as in the names of specs.
	Rows string
	// Promise describes the promise in one line.
	Promise string
	// Revision is the only revision under which the promise is given. If it is empty, the promise is given under all.
	Revision contract.Revision

	needs []need
	run   func(t *testContext)
	// alone is set if no other check may run at the same time, because this one stops the deployer.
	alone bool
	// rule is called for every stored version of every item of all checks, with the version before it. It returns what
	// is wrong, or "". A check has either run or rule.
	rule func(before, now *lsv1alpha1.DeployItem) string
}

// RowIDs returns the individual rows of the check.
func (c Check) RowIDs() []string {
	return strings.Split(strings.Trim(c.Rows, "[]"), ", ")
}

// Title returns promise and rows, which is the name of the spec.
func (c Check) Title() string { return c.Promise + " " + c.Rows }

// Checks returns all checks in the order in which they run. Those that judge the whole history come last.
func Checks() []Check {
	return slices.Concat(runChecks, failureChecks, deletionChecks, midrunChecks, cancelChecks, optionChecks, responsibilityChecks,
		alone(restartChecks), writeChecks, rules)
}

// alone marks checks during which no other may run.
func alone(checks []Check) []Check {
	checks = slices.Clone(checks)
	for i := range checks {
		checks[i].alone = true
	}
	return checks
}

// checks returns the checks of a revision that the subject selects.
func (s Subject) checks(revision contract.Revision) []Check {
	return slices.DeleteFunc(Checks(), func(c Check) bool {
		return c.Revision != "" && c.Revision != revision || len(s.Only) > 0 && !slices.Contains(s.Only, c.Name)
	})
}
