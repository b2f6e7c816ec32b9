// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// Check checks one promise of the deployer contract from outside the deployer. The exported fields describe the check.
// No cluster is needed to read them. [AllChecks] returns all checks.
type Check struct {
	// Name identifies the check, for example in Options.Only and Exception.Check.
	Name string
	// Rows lists the IDs of the promises in docs/behaviours.md that the check covers, in brackets, for example "[C10,
	// L34]".
	Rows string
	// Promise states the promise in one line.
	Promise string
	// Revision limits the check to one revision of the contract. If Revision is empty, the check applies to all
	// revisions.
	Revision contract.Revision

	needs []need
	run   func(t *testContext)
	// alone is true if the check stops the deployer, so that no other check may run at the same time.
	alone bool
	// rule compares a version of an item with the previous version. It returns a description of the violation, or "" if
	// there is none. It is called for every stored version of every item in all scenarios. A check sets either `rule`
	// or `run`.
	rule func(before, now *lsv1alpha1.DeployItem) string
}

// ListRows returns the IDs of the rows that the check covers.
func (c Check) ListRows() []string {
	return strings.Split(strings.Trim(c.Rows, "[]"), ", ")
}

// SpecName returns the name of the Ginkgo spec, which consists of the promise and the rows.
func (c Check) SpecName() string { return c.Promise + " " + c.Rows }

// AllChecks returns all checks in the order in which they run. The checks whose promise begins with "at every moment"
// come last, because they check the histories of the items in all other checks.
func AllChecks() []Check {
	return slices.Concat(runChecks, failureChecks, deletionChecks, midrunChecks, cancelChecks, optionChecks, responsibilityChecks,
		markAlone(restartChecks), writeChecks, rules)
}

// markAlone returns a copy of the checks in which the field `alone` of each check is true.
func markAlone(checks []Check) []Check {
	checks = slices.Clone(checks)
	for i := range checks {
		checks[i].alone = true
	}
	return checks
}

// listChecks returns the checks that apply to the revision and that Options.Only selects.
func (s Subject) listChecks(revision contract.Revision) []Check {
	return slices.DeleteFunc(AllChecks(), func(c Check) bool {
		return c.Revision != "" && c.Revision != revision || len(s.Only) > 0 && !slices.Contains(s.Only, c.Name)
	})
}
