// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
)

// Explain converts facts to an explanation. f.Item must not be nil.
func Explain(f Facts) *Explanation {
	di := f.Item
	d := contract.Evaluate(di, contract.Options{Now: f.Now})
	e := &Explanation{
		APIVersion: APIVersion, Kind: KindExplanation, Time: metav1.NewTime(f.Now.UTC()),
		Item: Item{
			Namespace: word(di.Namespace), Name: word(di.Name), Type: word(string(di.Spec.Type)), Phase: word(string(di.Status.Phase)),
			Generation: di.Generation, ObservedGeneration: di.Status.ObservedGeneration,
			Created: metav1.NewTime(di.CreationTimestamp.UTC()), Deleted: timeRef(di.DeletionTimestamp),
		},
		Revision:    revision(di, d.Revision),
		Decision:    f.decision(d),
		Responsible: f.responsible(),
		Waits:       f.waits(d),
		Times:       f.times(d),
		Outcome:     f.outcome(),
		Hooks:       f.hooks(),
		NextJob:     nextJob(&f, d),
		History:     f.History,
		Unknown:     f.Unknown,
	}
	e.Objects, e.Graph = f.provider()
	e.Advice = advise(&f, e, d)
	return e
}

// outcome explains how the last run ended.
func (f *Facts) outcome() Outcome {
	s := &f.Item.Status
	o := Outcome{Phase: word(string(s.Phase)), Started: timeRef(s.LastReconcileTime), FirstError: errorOf(s.FirstError), LastError: errorOf(s.LastError)}
	if t := s.TransitionTimes; t != nil && contract.IsFinal(s.Phase) {
		o.Finished = timeRef(t.FinishedTime)
	}
	return o
}

// hooks returns the hooks whose effect is visible in the history or in the status.
func (f *Facts) hooks() []HookEffect {
	var out []HookEffect
	if c := contract.GetCondition(f.Item.Status.Conditions, contract.ConditionBackground); c != nil && c.Reason == "HookFailed" {
		out = append(out, HookEffect{Hook: "a hook", Effect: "failed outside a job: " + line(c.Message), At: timeOf(c.LastTransitionTime)})
	}
	for _, r := range slices.Backward(f.History) {
		for _, h := range r.Hooks {
			effect := h.Effect
			switch {
			case h.Failed:
				effect = "failed"
			case effect == "":
				continue // the hook returned no result
			}
			out = append(out, HookEffect{Hook: word(h.Type + " " + h.Name), Effect: word(effect), At: &metav1.Time{Time: r.Began}})
		}
		if len(out) > 0 {
			return out
		}
	}
	return out
}

// waits returns what the item waits for.
func (f *Facts) waits(d contract.Decision) []Wait {
	var out []Wait
	di := f.Item
	if c := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting); c != nil && c.Status == "True" {
		text := line(c.Message)
		if contract.HookStop(di) != "" {
			text = "a hook of the deployer: " + text
		}
		out = append(out, Wait{For: text, Since: timeOf(c.LastTransitionTime)})
	}
	if c := contract.GetCondition(di.Status.Conditions, contract.ConditionPaused); c != nil && c.Status == "True" {
		out = append(out, Wait{For: "the removal of the annotation " + contract.PausedAnnotation, Since: timeOf(c.LastTransitionTime)})
	}
	if f.TargetMissing && (d.Due || d.Held) {
		out = append(out, Wait{For: "Target " + word(di.Spec.Target.Name) + ", which does not exist"})
	}
	if f.ContextMissing && (d.Due || d.Held) {
		out = append(out, Wait{For: "Context " + word(contextName(di.Spec.Context)) + ", which does not exist"})
	}
	switch d.Reason {
	case "NewJob", "NotStarted", "Generation", "Operation", "Deletion":
		out = append(out, Wait{For: "a deployer to start the run", Since: requested(f)})
	case "AwaitingJob", "NeverRun", "GenerationMoved", "DeletionPending", "NotFinal":
		out = append(out, Wait{For: "Landscaper to hand out a job", Since: deletedOr(f)})
	}
	return out
}

// requested returns the time when the current run was requested. It returns nil if this time is not recorded in the
// item.
func requested(f *Facts) *metav1.Time {
	di := f.Item
	switch {
	case di.Status.JobIDGenerationTime != nil && di.Status.JobID != di.Status.JobIDFinished:
		return timeRef(di.Status.JobIDGenerationTime)
	case di.DeletionTimestamp != nil:
		return timeRef(di.DeletionTimestamp)
	case di.Status.LastReconcileTime == nil:
		return timeRef(&di.CreationTimestamp)
	}
	return nil
}

// deletedOr returns the deletion timestamp of the item. If the item is not being deleted and has never been reconciled,
// deletedOr returns the creation timestamp. Otherwise it returns nil.
func deletedOr(f *Facts) *metav1.Time {
	if f.Item.DeletionTimestamp != nil {
		return timeRef(f.Item.DeletionTimestamp)
	}
	if f.Item.Status.LastReconcileTime == nil {
		return timeRef(&f.Item.CreationTimestamp)
	}
	return nil
}

func contextName(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

// word returns a name without line breaks, shortened to maxName bytes.
func word(s string) string { return contract.OneLine(s, maxName) }

// line returns a message without line breaks, shortened to maxText bytes.
func line(s string) string { return contract.OneLine(s, maxText) }

func timeOf(t metav1.Time) *metav1.Time { return timeRef(&t) }

// timeRef returns a time in UTC, or nil.
func timeRef(t *metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC()}
}

func timeAt(t time.Time) *metav1.Time { return timeRef(&metav1.Time{Time: t}) }
