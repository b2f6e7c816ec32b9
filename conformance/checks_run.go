// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// maxMessage is the maximum length of the message of an error in bytes.
const maxMessage = 1024

var runChecks = []Check{
	{
		Name: "succeeds", Rows: "[C10, L34]", Promise: "a valid item ends as Succeeded, without an error",
		run: func(t *testContext) {
			di := t.deployValid()
			t.require(di.Status.LastError == nil, "the item succeeded with an error%s", formatError(di))
		},
	},
	{
		Name: "pickup", Rows: "[C5, C7, L27, L28]",
		Promise: "a run begins with one write: phase Init, lastReconcileTime, observedGeneration",
		run: func(t *testContext) {
			t.deployValid()
			versions := t.valid.getVersions()
			i := slices.IndexFunc(versions, func(di item) bool { return di.Status.Phase != "" })
			t.requireStarted(versions[i])
		},
	},
	{
		Name: "annotations-taken", Rows: "[C3, C5, L26]", Revision: contract.RevisionAnnotation,
		Promise: "the annotations operation and reconcile-time are removed when the run has ended",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.waitUntil("lose its annotations operation and reconcile-time", func(di item) bool {
				_, operation := di.Annotations[lsv1alpha1.OperationAnnotation]
				_, since := di.Annotations[lsv1alpha1.ReconcileTimestampAnnotation]
				return !operation && !since
			})
		},
	},
	{
		Name: "progressing", Rows: "[C9]", Promise: "an item in progress has no phase other than Init and Progressing", needs: []need{needsSlow},
		run: func(t *testContext) {
			t.deploySlow()
			di := t.slow.allowSuccessAndWait()
			t.require(di.Status.Phase == phases.Succeeded, "the slow item ended as %q%s", di.Status.Phase, formatError(di))
			path := listPhases(t.slow.getVersions())
			for _, phase := range path[:len(path)-1] {
				t.require(phase == phases.Init || phase == phases.Progressing, "the item had phase %q during its run", phase)
			}
		},
	},
	{
		Name: "deployer", Rows: "[C11]", Promise: "status.deployer has name, identity and version",
		run: func(t *testContext) {
			d := t.deployValid().Status.Deployer
			t.require(d.Name != "" && d.Identity != "" && d.Version != "", "status.deployer is %+v", d)
		},
	},
	{
		Name: "next-job", Rows: "[C3, L27]", Revision: contract.RevisionJobID, Promise: "another job runs an unchanged item again",
		run: func(t *testContext) {
			first := t.deployValid()
			job := t.valid.requestRun()
			di := t.valid.requireSucceeded()
			t.require(di.Status.JobIDFinished == job, "jobIDFinished is %q, want %q", di.Status.JobIDFinished, job)
			t.requireStartedAfter(first)
		},
	},
	{
		Name: "reconcile-operation", Rows: "[C3, L26, L28]", Revision: contract.RevisionAnnotation,
		Promise: "the operation reconcile runs an unchanged item again, and its annotation is removed",
		run: func(t *testContext) {
			first := t.deployValid()
			t.valid.setOperation(lsv1alpha1.ReconcileOperation)
			t.valid.requireSucceeded()
			t.requireStartedAfter(first)
		},
	},
	{
		Name: "generation", Rows: "[C7, L27]", Revision: contract.RevisionAnnotation, Promise: "a changed spec alone starts a run",
		run: func(t *testContext) {
			first := t.deployValid()
			changed := t.valid.patch(withTimeout(contract.DefaultTimeout + time.Second))
			di := t.valid.requireSucceeded()
			t.require(di.Status.ObservedGeneration == changed.Generation, "observedGeneration is %d, want %d", di.Status.ObservedGeneration, changed.Generation)
			t.requireStartedAfter(first)
		},
	},
	{
		Name: "spec-waits", Rows: "[C3, C8]", Revision: contract.RevisionJobID, Promise: "a changed spec waits for its job, which then observes the generation",
		run: func(t *testContext) {
			t.deployValid()
			changed := t.valid.patch(withTimeout(contract.DefaultTimeout + time.Second))
			t.requireNoWrites(changed)
			t.valid.requestRun()
			di := t.valid.requireSucceeded()
			t.require(di.Status.ObservedGeneration == changed.Generation, "observedGeneration is %d, want %d", di.Status.ObservedGeneration, changed.Generation)
		},
	},
	{
		Name: "finished-rests", Rows: "[C8, L4, L29]", Promise: "a finished item is not written, whatever annotations it has",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.waitForOperationRemoved()
			t.requireNoWrites(t.valid.patch(withAnnotation("example.com/note", "nothing that matters")))
		},
	},
}

var failureChecks = []Check{
	{
		Name: "invalid", Rows: "[C10]", Promise: "an item that can never succeed ends as Failed, with lastError", needs: []need{needsInvalid},
		run: func(t *testContext) { t.deployInvalid("conformance") },
	},
	{
		Name: "invalid-code", Rows: "[C10]", Promise: "the error of an invalid configuration has the code ERR_CONFIGURATION_PROBLEM", needs: []need{needsInvalid},
		run: func(t *testContext) {
			e := t.deployInvalid("conformance").Status.LastError
			t.require(slices.Contains(e.Codes, lsv1alpha1.ErrorConfigurationProblem), "the codes of lastError are %v, want them to contain %s", e.Codes, lsv1alpha1.ErrorConfigurationProblem)
		},
	},
	{
		Name: "error-length", Rows: "[C10]", Promise: "a long error is stored as one line of at most 1 KiB", needs: []need{needsInvalid},
		run: func(t *testContext) {
			m := t.deployInvalid(strings.Repeat("a long line of an error;\n", 1024)).Status.LastError.Message
			t.require(len(m) <= maxMessage, "the message has %d bytes", len(m))
			t.require(utf8.ValidString(m) && !strings.Contains(m, "\n"), "the message is not one line of valid text: %q", m)
		},
	},
	{
		Name: "recovers", Rows: "[C7, C10]", Promise: "a corrected item ends as Succeeded, and its error is removed", needs: []need{needsInvalid},
		run: func(t *testContext) {
			t.deployInvalid("conformance")
			t.invalid.waitForOperationRemoved()
			t.invalid.configure(t.env.subject.Valid)
			if t.usesJobs() {
				t.invalid.requestRun()
			}
			di := t.invalid.requireSucceeded()
			t.require(di.Status.LastError == nil, "the item succeeded with an error%s", formatError(di))
		},
	},
	{
		Name: "timeout", Rows: "[C10]", Revision: contract.RevisionJobID, needs: []need{needsSlow},
		Promise: "an item that does not finish within spec.timeout ends as Failed with ERR_TIMEOUT",
		run: func(t *testContext) {
			t.deploySlow(withTimeout(t.getBounds().Timeout))
			di := t.slow.waitUntilFinished()
			t.require(di.Status.Phase == phases.Failed && di.Status.LastError != nil, "the item ended as %q%s", di.Status.Phase, formatError(di))
			t.require(slices.Contains(di.Status.LastError.Codes, lsv1alpha1.ErrorTimeout), "the codes of lastError are %v, want them to contain %s", di.Status.LastError.Codes, lsv1alpha1.ErrorTimeout)
		},
	},
}
