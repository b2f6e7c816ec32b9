// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// reasonTexts explains each reason that contract.Evaluate can return. A test fails if a reason is missing.
var reasonTexts = map[contract.Reason]string{
	"NoItem":           "There is no deploy item.",
	"UnknownRevision":  "The revision of the contract is not known, so nothing runs.",
	"Ignored":          "The item is finished and carries the annotation landscaper.gardener.cloud/ignore, so nothing runs.",
	"NoFinalizer":      "The item is being deleted and no longer has Landscaper's finalizer, so there is nothing left for a deployer to do.",
	"AwaitingJob":      "An Execution manages the item and has not asked for a run yet.",
	"DeleteFailed":     "The deletion failed. It is tried again after a new job, an operation annotation, or a change of the spec.",
	"Paused":           "A run would be due, but the annotation deployerkit.dev/paused holds it back.",
	"Finished":         "The last run is finished and nothing has changed since.",
	"NeverRun":         "No job was ever handed out for the item. Under the job-ID contract, only Landscaper starts the first run.",
	"DeletionPending":  "The item is being deleted, and Landscaper has not handed out the job that deletes it. Landscaper first deletes the items that depend on it.",
	"GenerationMoved":  "The spec changed, and Landscaper has not handed out a job for the change yet.",
	"NotFinal":         "The job counts as finished, but the phase is not final. Only a new job can run.",
	"Operation":        "The operation annotation asks for a run.",
	"Generation":       "The spec changed since the last run.",
	"NotStarted":       "No run has started yet.",
	"InProgress":       "A run is in progress.",
	"Deletion":         "The item is being deleted, and no deletion has run yet.",
	"NewJob":           "Landscaper handed out a new job, and no deployer has started it yet.",
	"Unchanged":        "There is a new job, but the item has updateOnChangeOnly and its spec did not change. The job ends without a call of the deployer.",
	"BackgroundOwed":   "A background run did not finish and is tried again.",
	"BackgroundForced": "The annotation force-reconcile asks for a background run of the finished job.",
}

// toDecision explains whether the contract requires a run of the item now, and why.
func (f *Facts) toDecision(d contract.Decision) Decision {
	out := Decision{Due: d.Due, Reason: string(d.Reason), Why: reasonTexts[d.Reason], Action: string(d.Action)}
	if out.Why == "" {
		out.Why = "The reason is " + shortenName(string(d.Reason)) + "."
	}
	add := func(when bool, text string) {
		if when {
			out.Details = append(out.Details, text)
		}
	}
	add(d.Paused && !d.BlockedByPause, "The item is paused. At the moment, there is no run that the pause holds back.")
	add(d.Due && d.New, "The run begins with the next reconcile.")
	add(d.Due && d.Background, "It is a background run: it does not change the phase.")
	add(d.NewJob, "The run gets a job ID of its own, because the operation is test-reconcile.")
	add(d.SkipUninstall, "The annotation delete-without-uninstall is set: the deletion only removes the finalizer and leaves the objects in the target.")
	add(d.Expired, "The deadline has passed. The next reconcile ends the run as failed.")
	add(!d.Due && d.Forceable, "A hook, such as that of continuous reconciliation, may force a run.")
	return out
}

// describeRevision explains which revision of the contract between Landscaper and deployers the item follows, and why.
func describeRevision(di *lsv1alpha1.DeployItem, r contract.Revision) Revision {
	out := Revision{Name: string(r)}
	_, marked := di.Annotations[lsv1alpha1.DeployerTypeAnnotation]
	switch {
	case r == contract.RevisionJobID && di.Status.JobID != "":
		out.Why = "The status has a job ID."
	case r == contract.RevisionJobID && marked:
		out.Why = "Landscaper marked the item with the annotation deployer-type."
	case r == contract.RevisionAnnotation && contract.IsInProgress(di.Status.Phase):
		out.Why = "A run is in progress that began without a job ID."
	case r == contract.RevisionAnnotation:
		out.Why = "The item has neither a job ID nor the annotation deployer-type."
	}
	return out
}

// describeNextJob explains what a deployer would do if Landscaper requested another run. The request is a new job or
// the operation annotation, depending on the revision of the contract.
func describeNextJob(f *Facts, now contract.Decision) string {
	next := f.Item.DeepCopy()
	what := "The next job"
	if now.Revision == contract.RevisionJobID {
		next.Status.JobID += "+"
		next.Status.JobIDGenerationTime = nil
	} else {
		what = "The next operation reconcile"
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		if op := next.Annotations[lsv1alpha1.OperationAnnotation]; op == "" {
			next.Annotations[lsv1alpha1.OperationAnnotation] = string(lsv1alpha1.ReconcileOperation)
		}
	}
	if contract.IsInProgress(next.Status.Phase) {
		next.Status.Phase = lsv1alpha1.DeployItemPhase(lsv1alpha1.PhaseStringFailed)
	}
	d := contract.Evaluate(next, contract.Options{Revision: now.Revision, Now: f.Now})
	return what + " " + describeEffect(d)
}

// describeEffect describes what a deployer would do after a decision.
func describeEffect(d contract.Decision) string {
	switch {
	case d.Action == contract.ActionNone:
		return "would do nothing: " + toLowerFirst(reasonTexts[d.Reason])
	case d.BlockedByPause:
		return "would be held back by the annotation deployerkit.dev/paused."
	case !d.Due:
		return "would do nothing: " + toLowerFirst(reasonTexts[d.Reason])
	case d.Unchanged:
		return "would end at once without a call of the deployer, because nothing changed (updateOnChangeOnly)."
	case d.SkipUninstall:
		return "would only remove the finalizer and leave the objects in the target (delete-without-uninstall)."
	}
	return map[contract.Action]string{
		contract.ActionAbort:          "would abort the run in progress.",
		contract.ActionForceReconcile: "would call the deployer's ForceReconcile.",
		contract.ActionDelete:         "would call the deployer's Delete and then remove the finalizer.",
		contract.ActionReconcile:      "would call the deployer's Reconcile.",
	}[d.Action]
}

// toLowerFirst makes the first letter of a sentence lower case, so that it can follow a colon.
func toLowerFirst(sentence string) string {
	if sentence == "" {
		return "nothing is due."
	}
	return string(sentence[0]|0x20) + sentence[1:]
}

// toError returns an error of the status as part of an explanation.
func toError(e *lsv1alpha1.Error) *Error {
	if e == nil {
		return nil
	}
	out := &Error{Operation: shortenName(e.Operation), Reason: shortenName(e.Reason), Message: shortenText(e.Message), Since: toTimePtr(e.LastTransitionTime)}
	for i, code := range e.Codes {
		if i == maxErrorCodes {
			out.Codes = append(out.Codes, fmt.Sprintf("… %d more", len(e.Codes)-i))
			break
		}
		out.Codes = append(out.Codes, shortenName(string(code)))
	}
	return out
}
