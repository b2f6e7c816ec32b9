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
			Namespace: shortenName(di.Namespace), Name: shortenName(di.Name), Type: shortenName(string(di.Spec.Type)), Phase: shortenName(string(di.Status.Phase)),
			Generation: di.Generation, ObservedGeneration: di.Status.ObservedGeneration,
			Created: metav1.NewTime(di.CreationTimestamp.UTC()), Deleted: toUTC(di.DeletionTimestamp),
		},
		Revision:    describeRevision(di, d.Revision),
		Decision:    f.toDecision(d),
		Responsible: f.findResponsible(),
		Waits:       f.listWaits(d),
		Times:       f.toTimes(d),
		Outcome:     f.toOutcome(),
		Hooks:       f.listHooks(),
		NextJob:     describeNextJob(&f, d),
		History:     f.History,
		Unknown:     f.Unknown,
	}
	provider := f.readProviderStatus()
	e.Objects, e.Graph, e.Release = provider.objects, provider.graph, provider.release
	e.Advice = getAdvice(&f, e, d)
	return e
}

// toOutcome explains how the last run ended.
func (f *Facts) toOutcome() Outcome {
	s := &f.Item.Status
	o := Outcome{Phase: shortenName(string(s.Phase)), Started: toUTC(s.LastReconcileTime), FirstError: toError(s.FirstError), LastError: toError(s.LastError)}
	if t := s.TransitionTimes; t != nil && contract.IsFinal(s.Phase) {
		o.Finished = toUTC(t.FinishedTime)
	}
	return o
}

// listHooks returns the hooks whose effect is visible in the history or in the status.
func (f *Facts) listHooks() []HookEffect {
	var out []HookEffect
	if c := contract.GetCondition(f.Item.Status.Conditions, contract.ConditionBackground); c != nil && c.Reason == "HookFailed" {
		out = append(out, HookEffect{Hook: "a hook", Effect: "failed outside a job: " + shortenText(c.Message), At: toTimePtr(c.LastTransitionTime)})
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
			out = append(out, HookEffect{Hook: shortenName(h.Type + " " + h.Name), Effect: shortenName(effect), At: &metav1.Time{Time: r.Began}})
		}
		if len(out) > 0 {
			return out
		}
	}
	return out
}

// listWaits returns what the item waits for.
func (f *Facts) listWaits(d contract.Decision) []Wait {
	var out []Wait
	di := f.Item
	if c := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting); c != nil && c.Status == "True" {
		text := shortenText(c.Message)
		if contract.StoppedByHookMessage(di) != "" {
			text = "a hook of the deployer: " + text
		}
		out = append(out, Wait{For: text, Since: toTimePtr(c.LastTransitionTime)})
	}
	if c := contract.GetCondition(di.Status.Conditions, contract.ConditionPaused); c != nil && c.Status == "True" {
		out = append(out, Wait{For: "the removal of the annotation " + contract.PausedAnnotation, Since: toTimePtr(c.LastTransitionTime)})
	}
	if f.TargetMissing && (d.Due || d.BlockedByPause) {
		out = append(out, Wait{For: "Target " + shortenName(di.Spec.Target.Name) + ", which does not exist"})
	}
	if f.ContextMissing && (d.Due || d.BlockedByPause) {
		out = append(out, Wait{For: "Context " + shortenName(contextName(di.Spec.Context)) + ", which does not exist"})
	}
	switch d.Reason {
	case "NewJob", "NotStarted", "Generation", "Operation", "Deletion":
		out = append(out, Wait{For: "a deployer to start the run", Since: getRequestTime(f)})
	case "AwaitingJob", "NeverRun", "GenerationMoved", "DeletionPending", "NotFinal":
		out = append(out, Wait{For: "Landscaper to hand out a job", Since: getDeletionOrCreationTime(f)})
	}
	return out
}

// getRequestTime returns the time when the current run was requested. It returns nil if this time is not recorded in
// the item.
func getRequestTime(f *Facts) *metav1.Time {
	di := f.Item
	switch {
	case di.Status.JobIDGenerationTime != nil && di.Status.JobID != di.Status.JobIDFinished:
		return toUTC(di.Status.JobIDGenerationTime)
	case di.DeletionTimestamp != nil:
		return toUTC(di.DeletionTimestamp)
	case di.Status.LastReconcileTime == nil:
		return toUTC(&di.CreationTimestamp)
	}
	return nil
}

// getDeletionOrCreationTime returns the deletion timestamp of the item. If the item is not being deleted and has never
// been reconciled, getDeletionOrCreationTime returns the creation timestamp. Otherwise it returns nil.
func getDeletionOrCreationTime(f *Facts) *metav1.Time {
	if f.Item.DeletionTimestamp != nil {
		return toUTC(f.Item.DeletionTimestamp)
	}
	if f.Item.Status.LastReconcileTime == nil {
		return toUTC(&f.Item.CreationTimestamp)
	}
	return nil
}

func contextName(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

// shortenName returns a name without line breaks, shortened to maxName bytes.
func shortenName(s string) string { return contract.OneLine(s, maxName) }

// shortenText returns a message without line breaks, shortened to maxText bytes.
func shortenText(s string) string { return contract.OneLine(s, maxText) }

func toTimePtr(t metav1.Time) *metav1.Time { return toUTC(&t) }

// toUTC returns a time in UTC, or nil.
func toUTC(t *metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC()}
}

func newTime(t time.Time) *metav1.Time { return toUTC(&metav1.Time{Time: t}) }
