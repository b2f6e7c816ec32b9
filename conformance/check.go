// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// Check is one promise of the contract that can be seen from outside. Pure data; [Checks] has all of them.
type Check struct {
	// Name names the check in exceptions and expectations.
	Name string
	// Rows are the rows of the specification that it stands for, in brackets, as they stand in the names of specs.
	Rows string
	// Promise says in one line what is held.
	Promise string
	// Revision is the only one under which the promise is given. If it is empty, the promise is given under all.
	Revision contract.Revision

	needs []need
	run   func(t *testContext)
	// alone: the check has the deployer to itself, for it ends it.
	alone bool
	// rule holds for every stored version of every item of all checks, in the light of the version before it; it returns
	// what is broken. A check has either run or rule.
	rule func(before, now *lsv1alpha1.DeployItem) string
}

// RowIDs are the rows of the check, one by one.
func (c Check) RowIDs() []string {
	return strings.Split(strings.Trim(c.Rows, "[]"), ", ")
}

// Title is promise and rows, as a spec is named.
func (c Check) Title() string { return c.Promise + " " + c.Rows }

// Checks returns the table of all checks in the order in which they run; those that judge the whole history come last.
func Checks() []Check {
	return slices.Concat(runChecks, failureChecks, deletionChecks, midrunChecks, cancelChecks, optionChecks, responsibilityChecks,
		alone(restartChecks), writeChecks, rules)
}

// alone marks checks beside which no other may run.
func alone(checks []Check) []Check {
	checks = slices.Clone(checks)
	for i := range checks {
		checks[i].alone = true
	}
	return checks
}

// checks are those of a revision that the subject wants.
func (s Subject) checks(revision contract.Revision) []Check {
	return slices.DeleteFunc(Checks(), func(c Check) bool {
		return c.Revision != "" && c.Revision != revision || len(s.Only) > 0 && !slices.Contains(s.Only, c.Name)
	})
}
