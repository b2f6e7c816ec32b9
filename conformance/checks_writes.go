// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"k8s.io/apimachinery/pkg/api/equality"
)

// The number of writes that jobs may take.
const (
	// A first job takes three: its start, finalizer and annotations, its end. The next takes two: its start and its
	// end.
	twoJobs = 3 + 2
	// The start, and the removal of the finalizer.
	aDeletion = 2
	// Start and end in one write.
	anUnchangedJob = 1
)

var writeChecks = []Check{
	{
		Name: "writes", Rows: "[C5, C10, C13]", Promise: "an item is not written more often than necessary: twice for a job and for its deletion, and once to prepare it",
		run: func(t *testContext) {
			t.succeeds()
			t.valid.trigger()
			t.valid.succeeded()
			t.valid.settled()
			jobs, mine := twoJobs, 1 // the trigger
			if !t.jobs() {
				jobs++ // the operation must be removed
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
			// The last version is the deletion itself. It shows the item as it was before its finalizer was removed.
			all := t.valid.recorded()
			deletion := all[len(done)-1 : len(all)-1]
			n = writes(deletion) - mine + 1
			want := aDeletion + shownWork(deletion)
			t.require(n <= want, "the deletion cost %d writes, want at most %d", n, want)
		},
	},
}

// shownWork returns the number of runs that were shown as in progress. A run that cannot end immediately needs a write
// for that.
func shownWork(versions []item) int {
	n := 0
	for _, phase := range phasesOf(versions) {
		if phase == phases.Progressing || phase == phases.Deleting {
			n++
		}
	}
	return n
}

// writes returns the number of changes of an item, not counting those of providerStatus, exportRef and conditions,
// which belong to its deployer.
func writes(versions []item) int {
	n := 0
	for i := 1; i < len(versions); i++ {
		if !equality.Semantic.DeepEqual(bare(versions[i-1]), bare(versions[i])) {
			n++
		}
	}
	return n
}

// bare returns the part of an item that belongs to the contract.
func bare(di item) item {
	out := di.DeepCopy()
	out.ResourceVersion, out.ManagedFields = "", nil
	out.Status.ProviderStatus, out.Status.ExportReference, out.Status.Conditions = nil, nil, nil
	return out
}
