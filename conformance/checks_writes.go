// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"k8s.io/apimachinery/pkg/api/equality"
)

// What jobs may cost. Writes.
const (
	// A first job: its begin, finalizer and annotations, its end. The next: its begin and its end.
	twoJobs = 3 + 2
	// Its begin, and the finalizer.
	aDeletion = 2
	// Begin and end in one.
	anUnchangedJob = 1
)

var writeChecks = []Check{
	{
		Name: "writes", Rows: "[C5, C10, C13]", Promise: "an item is not written more often than needed: twice for a job and for its deletion, once to prepare it",
		run: func(t *testContext) {
			t.succeeds()
			t.valid.trigger()
			t.valid.succeeded()
			t.valid.settled()
			jobs, mine := twoJobs, 1 // the trigger
			if !t.jobs() {
				jobs++ // the operation has to go
			}
			done := t.valid.versions()
			jobs += shownWork(done)
			if t.jobs() {
				mine++ // the first trigger
			}
			n := writes(done) - mine
			t.require(n <= jobs, "two jobs cost %d writes, want at most %d", n, jobs)
			t.valid.delete()
			t.valid.gone()
			// The last version is the end itself: it shows the item as it was before its finalizer went.
			all := t.valid.recorded()
			deletion := all[len(done)-1 : len(all)-1]
			n = writes(deletion) - mine + 1
			want := aDeletion + shownWork(deletion)
			t.require(n <= want, "the deletion cost %d writes, want at most %d", n, want)
		},
	},
}

// shownWork counts the runs that showed that they are in work: one that cannot end at once needs a write for that.
func shownWork(versions []item) int {
	n := 0
	for _, phase := range phasesOf(versions) {
		if phase == phases.Progressing || phase == phases.Deleting {
			n++
		}
	}
	return n
}

// writes counts the changes of an item, except those of what its deployer keeps and shows of its own: providerStatus,
// exportRef and conditions.
func writes(versions []item) int {
	n := 0
	for i := 1; i < len(versions); i++ {
		if !equality.Semantic.DeepEqual(bare(versions[i-1]), bare(versions[i])) {
			n++
		}
	}
	return n
}

// bare is an item as the contract sees it.
func bare(di item) item {
	out := di.DeepCopy()
	out.ResourceVersion, out.ManagedFields = "", nil
	out.Status.ProviderStatus, out.Status.ExportReference, out.Status.Conditions = nil, nil, nil
	return out
}
