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

// maxMessage is how long the message of an error may be. Bytes.
const maxMessage = 1024

var runChecks = []Check{
	{
		Name: "succeeds", Rows: "[C10, L34]", Promise: "a valid item ends as Succeeded, without an error",
		run: func(p *probe) {
			di := p.succeeds()
			p.hold(di.Status.LastError == nil, "it succeeded%s", errorOf(di))
		},
	},
	{
		Name: "pickup", Rows: "[C5, C7, L27, L28]",
		Promise: "a run begins with one write: phase Init, lastReconcileTime, observedGeneration",
		run: func(p *probe) {
			p.succeeds()
			versions := p.versions("valid")
			i := slices.IndexFunc(versions, func(di item) bool { return di.Status.Phase != "" })
			p.began(versions[i])
		},
	},
	{
		Name: "annotations-taken", Rows: "[C3, C5, L26]", Revision: contract.RevisionAnnotation,
		Promise: "the annotations operation and reconcile-time are gone once the run ended",
		run: func(p *probe) {
			p.succeeds()
			p.until("valid", "rid of its annotations", func(di item) bool {
				_, operation := di.Annotations[lsv1alpha1.OperationAnnotation]
				_, since := di.Annotations[lsv1alpha1.ReconcileTimestampAnnotation]
				return !operation && !since
			})
		},
	},
	{
		Name: "progressing", Rows: "[C9]", Promise: "an item that is in work shows Init or Progressing and nothing else", needs: []need{needsSlow},
		run: func(p *probe) {
			p.working()
			di := p.finish("slow")
			p.hold(di.Status.Phase == phases.Succeeded, "the slow item ended as %q%s", di.Status.Phase, errorOf(di))
			path := phasesOf(p.versions("slow"))
			for _, phase := range path[:len(path)-1] {
				p.hold(phase == phases.Init || phase == phases.Progressing, "phase %q in the middle of a run", phase)
			}
		},
	},
	{
		Name: "deployer", Rows: "[C11]", Promise: "status.deployer has name, identity and version",
		run: func(p *probe) {
			d := p.succeeds().Status.Deployer
			p.hold(d.Name != "" && d.Identity != "" && d.Version != "", "status.deployer is %+v", d)
		},
	},
	{
		Name: "next-job", Rows: "[C3, L27]", Revision: contract.RevisionJobID, Promise: "another job runs an unchanged item again",
		run: func(p *probe) {
			first := p.succeeds()
			job := p.trigger("valid")
			di := p.succeededAgain("valid")
			p.hold(di.Status.JobIDFinished == job, "jobIDFinished is %q, want %q", di.Status.JobIDFinished, job)
			p.beganAfter(first)
		},
	},
	{
		Name: "reconcile-operation", Rows: "[C3, L26, L28]", Revision: contract.RevisionAnnotation,
		Promise: "the operation reconcile runs an unchanged item again and is removed",
		run: func(p *probe) {
			first := p.succeeds()
			p.operate("valid", lsv1alpha1.ReconcileOperation)
			p.succeededAgain("valid")
			p.beganAfter(first)
		},
	},
	{
		Name: "generation", Rows: "[C7, L27]", Revision: contract.RevisionAnnotation, Promise: "a changed spec alone makes a run",
		run: func(p *probe) {
			first := p.succeeds()
			changed := p.change(withTimeout(contract.DefaultTimeout + time.Second))
			di := p.succeededAgain("valid")
			p.hold(di.Status.ObservedGeneration == changed.Generation, "observedGeneration %d", di.Status.ObservedGeneration)
			p.beganAfter(first)
		},
	},
	{
		Name: "spec-waits", Rows: "[C3, C8]", Revision: contract.RevisionJobID, Promise: "a changed spec waits for its job, which then observes the generation",
		run: func(p *probe) {
			p.succeeds()
			changed := p.change(withTimeout(contract.DefaultTimeout + time.Second))
			p.quiet(changed)
			p.trigger("valid")
			di := p.succeededAgain("valid")
			p.hold(di.Status.ObservedGeneration == changed.Generation, "observedGeneration %d, want %d", di.Status.ObservedGeneration, changed.Generation)
		},
	},
	{
		Name: "finished-rests", Rows: "[C8, L4, L29]", Promise: "a finished item is not written, whatever is annotated",
		run: func(p *probe) {
			p.succeeds()
			p.settled("valid")
			p.quiet(p.change(withAnnotation("example.com/note", "nothing that matters")))
		},
	},
}

// began holds that a version is the begin of a run.
func (p *probe) began(di item) {
	s := di.Status
	p.hold(s.Phase == phases.Init, "the first phase is %q", s.Phase)
	p.hold(!s.LastReconcileTime.IsZero(), "the run began without lastReconcileTime")
	p.hold(s.ObservedGeneration == di.Generation, "the run began with observedGeneration %d, generation %d", s.ObservedGeneration, di.Generation)
	if p.jobs() {
		p.hold(!s.LastReconcileTime.Before(s.JobIDGenerationTime), "lastReconcileTime %v is before jobIDGenerationTime %v", s.LastReconcileTime, s.JobIDGenerationTime)
	}
}

// beganAfter holds that a run began after a version.
func (p *probe) beganAfter(di item) {
	for _, v := range p.after(di) {
		if v.Status.Phase != di.Status.Phase {
			p.began(v)
			return
		}
	}
	p.fail("no run was begun")
}

// settled waits until a finished item has lost the annotations that asked for its run.
func (p *probe) settled(name string) {
	p.until(name, "rid of its operation", func(di item) bool { return di.Annotations[lsv1alpha1.OperationAnnotation] == "" })
}

var failureChecks = []Check{
	{
		Name: "invalid", Rows: "[C10]", Promise: "an item that can never succeed ends as Failed, with lastError", needs: []need{needsInvalid},
		run: func(p *probe) { p.failsInvalid("conformance") },
	},
	{
		Name: "invalid-code", Rows: "[C10]", Promise: "the error of an invalid configuration has the code ERR_CONFIGURATION_PROBLEM", needs: []need{needsInvalid},
		run: func(p *probe) {
			e := p.failsInvalid("conformance").Status.LastError
			p.hold(slices.Contains(e.Codes, lsv1alpha1.ErrorConfigurationProblem), "the codes are %v", e.Codes)
		},
	},
	{
		Name: "error-length", Rows: "[C10]", Promise: "a long error is stored as one line of at most 1 KiB", needs: []need{needsInvalid},
		run: func(p *probe) {
			m := p.failsInvalid(strings.Repeat("a long line that nobody reads;\n", 1024)).Status.LastError.Message
			p.hold(len(m) <= maxMessage, "the message has %d bytes", len(m))
			p.hold(utf8.ValidString(m) && !strings.Contains(m, "\n"), "the message is not one line of valid text: %q", m)
		},
	},
	{
		Name: "recovers", Rows: "[C7, C10]", Promise: "an item that was put right ends as Succeeded, and its error is gone", needs: []need{needsInvalid},
		run: func(p *probe) {
			p.failsInvalid("conformance")
			p.settled("invalid")
			p.must(p.ls.Update(p.ctx, p.key("invalid"), p.subject.Valid(p.key("invalid"))))
			if p.jobs() {
				p.trigger("invalid")
			}
			di := p.succeededAgain("invalid")
			p.hold(di.Status.LastError == nil, "it succeeded%s", errorOf(di))
		},
	},
	{
		Name: "timeout", Rows: "[C10]", Revision: contract.RevisionJobID, needs: []need{needsSlow},
		Promise: "an item that is not done within spec.timeout ends as Failed with ERR_TIMEOUT",
		run: func(p *probe) {
			p.working(withTimeout(p.subject.Bounds.Timeout))
			di := p.finished("slow")
			p.hold(di.Status.Phase == phases.Failed && di.Status.LastError != nil, "it ended as %q%s", di.Status.Phase, errorOf(di))
			p.hold(slices.Contains(di.Status.LastError.Codes, lsv1alpha1.ErrorTimeout), "the codes are %v", di.Status.LastError.Codes)
		},
	},
}

// failsInvalid deploys the item "invalid" and waits for its failure.
func (p *probe) failsInvalid(note string) item {
	p.deploy("invalid", p.invalid(note))
	di := p.finished("invalid")
	p.hold(di.Status.Phase == phases.Failed, "an invalid item ended as %q", di.Status.Phase)
	p.hold(di.Status.LastError != nil, "an invalid item failed without lastError")
	return di
}
