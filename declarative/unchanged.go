// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"slices"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/observe"
)

// markUnchanged marks the desired children that have not changed since they had the desired state, so that the engine
// does not read them. Children with StrategyApply need no mark, because the engine detects without a request that
// they are unchanged. markUnchanged returns the observed version of each child that may be marked.
func (m *memory) markUnchanged(desired []apply.Desired, children Children) map[apply.Ref]observe.Version {
	if !slices.ContainsFunc(desired, isRead) {
		return nil
	}
	observed := map[apply.Ref]observe.Version{}
	for _, child := range children {
		observed[child.Ref()] = observe.GetVersion(child.content())
	}
	versions := map[apply.Ref]observe.Version{}
	for i := range desired {
		ref := apply.ToRef(desired[i].Object)
		if version, isChild := observed[ref]; isChild && isRead(desired[i]) {
			versions[ref] = version
			desired[i].Unchanged = m.unchanged[ref] == version
		}
	}
	return versions
}

// isRead reports whether the engine reads an unmarked child in each run.
func isRead(child apply.Desired) bool {
	return child.Strategy != apply.StrategyApply && child.Policy != apply.PolicyRetain
}

// recordUnchanged records the versions of the children that have the desired state after a run. A child that this run
// has changed is read once more, because its version has changed since it was observed.
func (m *memory) recordUnchanged(versions map[apply.Ref]observe.Version, report apply.Report, err error) {
	m.unchanged = nil
	if err != nil {
		return
	}
	for _, ref := range report.Postponed {
		delete(versions, ref)
	}
	for _, waiting := range report.Waiting {
		delete(versions, waiting.Ref)
	}
	m.unchanged = versions
}
