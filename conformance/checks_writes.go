// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"k8s.io/apimachinery/pkg/api/equality"
)

// These are the maximum numbers of writes that a deployer may need. Writes that only show that a run is in progress do
// not count.
const (
	// The first job takes three writes: its start, the finalizer with the annotations, and its end. The second job takes
	// two writes: its start and its end.
	maxWritesTwoJobs = 3 + 2
	// A deletion takes two writes: its start, and the removal of the finalizer.
	maxWritesDeletion = 2
	// A job that changes nothing starts and ends in a single write.
	maxWritesUnchangedJob = 1
)

var writeChecks = []Check{
	{
		Name: "writes", Rows: "[C5, C10, C13]", Promise: "an item is not written more often than necessary: twice for each job, twice for the deletion, and once to prepare the item",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.requestRun()
			t.valid.requireSucceeded()
			t.valid.waitForOperationRemoved()
			jobs, mine := maxWritesTwoJobs, 1 // the check writes the item once, to trigger the second job
			if !t.usesJobs() {
				jobs++ // the write that removes the operation annotation
			}
			done := t.valid.getVersions()
			jobs += countShownRuns(done)
			if t.usesJobs() {
				mine++ // the check also triggers the first job
			}
			n := countWrites(done) - mine
			t.require(n <= jobs, "two jobs cost %d writes, want at most %d", n, jobs)
			t.valid.delete()
			t.valid.waitForDeletion()
			// The last recorded version comes from the deletion event and shows the item before the finalizer was
			// removed. It does not count as a write.
			all := t.valid.getRecordedVersions()
			deletion := all[len(done)-1 : len(all)-1]
			n = countWrites(deletion) - mine + 1
			want := maxWritesDeletion + countShownRuns(deletion)
			t.require(n <= want, "the deletion cost %d writes, want at most %d", n, want)
		},
	},
}

// countShownRuns returns how many runs the versions of an item show as being in progress. For each of these runs, the
// check permits one write in addition to maxWritesTwoJobs or maxWritesDeletion.
func countShownRuns(versions []item) int {
	n := 0
	for _, phase := range listPhases(versions) {
		if phase == phases.Progressing || phase == phases.Deleting {
			n++
		}
	}
	return n
}

// countWrites returns the number of changes of an item. It does not count changes of providerStatus, exportRef and
// conditions, because the deployer may write these fields at any time.
func countWrites(versions []item) int {
	n := 0
	for i := 1; i < len(versions); i++ {
		if !equality.Semantic.DeepEqual(stripIgnoredFields(versions[i-1]), stripIgnoredFields(versions[i])) {
			n++
		}
	}
	return n
}

// stripIgnoredFields returns a copy of the item without the fields that the function `countWrites` ignores.
func stripIgnoredFields(di item) item {
	out := di.DeepCopy()
	out.ResourceVersion, out.ManagedFields = "", nil
	out.Status.ProviderStatus, out.Status.ExportReference, out.Status.Conditions = nil, nil, nil
	return out
}
