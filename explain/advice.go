// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// The symptoms, which are the sections of docs/troubleshooting.md.
const (
	SymptomNotPickedUp  = "not picked up"
	SymptomInit         = "stuck in Init"
	SymptomProgressing  = "Progressing"
	SymptomFailed       = "Failed"
	SymptomDeleting     = "stuck in Deleting"
	SymptomFight        = "fights"
	SymptomTarget       = "refused target"
	SymptomPermissions  = "missing permissions"
	SymptomNothingToDo  = "nothing to do"
	settled             = 30 * time.Second // a younger run is not stuck
	operationAnnotation = lsv1alpha1.OperationAnnotation
)

// Symptoms returns all symptoms.
func Symptoms() []string {
	return []string{
		SymptomNotPickedUp, SymptomInit, SymptomProgressing, SymptomFailed, SymptomDeleting, SymptomFight, SymptomTarget, SymptomPermissions, SymptomNothingToDo,
	}
}

// situation is the input of a rule.
type situation struct {
	*Facts

	e *Explanation
	d contract.Decision
}

// rule gives advice in some situations.
type rule struct {
	symptom string
	when    func(situation) bool
	text    string
}

// rules lists all rules. The advice is in their order.
var rules = []rule{
	{SymptomNotPickedUp, func(s situation) bool { return s.d.Held }, "Remove the annotation deployerkit.dev/paused to let the run begin."},
	{SymptomNotPickedUp, reason("Ignored"), "Remove the annotation landscaper.gardener.cloud/ignore to let the item run again."},
	{
		SymptomNotPickedUp, func(s situation) bool { return s.d.Reason == "NeverRun" && !s.managed() },
		"No Execution manages the item. Annotate it with " + operationAnnotation + "=test-reconcile to start a first run by hand.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool {
			return s.managed() && slices.Contains([]contract.Reason{"AwaitingJob", "NeverRun", "GenerationMoved", "NotFinal"}, s.d.Reason)
		},
		"Look at the Execution and its Installation with deployerkit tree: Landscaper hands out the job when what comes before has succeeded.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool { return s.waitsForDeployer() && s.noneResponsible() },
		"Compare the type and the Target of the item with the deployers above, or install a deployer for the type.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool { return s.waitsForDeployer() && s.stopped() },
		"The deployer does not run. Start it, and look at its log.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool { return s.waitsForDeployer() && s.works() && s.long() },
		"The deployer runs and does not start the item. Check its readiness (/readyz) and its log: it may lack rights, or its workers may be busy.",
	},
	{
		SymptomInit, func(s situation) bool { return s.inInit() && s.stopped() },
		"The replica that started the run has stopped. The run goes on when a deployer runs again; it fails at its deadline.",
	},
	{
		SymptomInit, func(s situation) bool {
			return s.inInit() && !s.stopped() && s.e.Outcome.LastError == nil && !s.TargetMissing && !s.ContextMissing
		},
		"The call of the deployer has not returned yet. Look at its log and its history; the run fails at its deadline.",
	},
	{
		SymptomInit, func(s situation) bool { return s.inInit() && s.e.Outcome.LastError != nil },
		"The run fails again and again. The last error says why; it is retried until the deadline.",
	},
	{SymptomInit, func(s situation) bool { return s.running() && s.ContextMissing }, "Create the Context that the item names."},
	{SymptomTarget, func(s situation) bool { return s.running() && s.TargetMissing }, "Create the Target that the item names, in the namespace of the item."},
	{
		SymptomProgressing, func(s situation) bool { return s.phase() == lsv1alpha1.PhaseStringProgressing && !s.d.Expired },
		"Look at what the item waits for. The run goes on when it is ready, and fails at the deadline.",
	},
	{SymptomTarget, failedWith("AllowPrivateHosts"), "If the address is right, start the deployer with --allow-private-hosts."},
	{SymptomTarget, func(s situation) bool { return s.refusedTarget() }, "Change the kubeconfig of the Target. The message names the field that is refused."},
	{
		SymptomPermissions, func(s situation) bool { return s.failsFor("ERR_UNAUTHORIZED") || s.failureHas("forbidden") },
		"Give the account named in the message the right that it lacks, then start a new job.",
	},
	{SymptomPermissions, func(s situation) bool { return len(s.Unknown) > 0 }, "Parts of this explanation are unknown. With the rights named there you see more."},
	{
		SymptomFailed, func(s situation) bool { return s.failed() && s.failsFor("ERR_CONFIGURATION_PROBLEM") },
		"Correct the configuration. A retry without a change fails in the same way.",
	},
	{
		SymptomFailed, func(s situation) bool { return s.failed() && s.failsFor("ERR_TIMEOUT") },
		"The run did not end in time. The first error and the end of the message say what it waited for; raise spec.timeout if that needs longer.",
	},
	{SymptomFailed, func(s situation) bool { return s.failed() && s.d.Revision == contract.RevisionJobID && !s.deleting() }, "After the cause is gone, start a new job: annotate the Installation with " + operationAnnotation + "=reconcile."},
	{SymptomFailed, func(s situation) bool {
		return s.failed() && s.d.Revision == contract.RevisionAnnotation && !s.deleting()
	}, "After the cause is gone, annotate the item with " + operationAnnotation + "=reconcile."},
	{SymptomDeleting, reason("NoFinalizer"), "The finalizer of another controller keeps the item. That controller has to remove it; see metadata.finalizers."},
	{
		SymptomDeleting, reason("DeletionPending"),
		"Delete the Installation, not the deploy item: Landscaper then hands out the job that deletes it. For an item of your own, annotate it with " + operationAnnotation + "=test-reconcile.",
	},
	{SymptomDeleting, func(s situation) bool { return s.deleting() && s.phase() == lsv1alpha1.PhaseStringDeleting }, "Look at what the item waits for: often a finalizer in the target cluster that its controller does not remove."},
	{
		SymptomDeleting, func(s situation) bool { return s.deleting() && (s.failed() || s.TargetMissing) },
		"If the target cluster is gone, annotate the item with landscaper.gardener.cloud/delete-without-uninstall=true and start the deletion again. Its objects stay if the cluster exists.",
	},
	{SymptomFight, func(s situation) bool { return s.fight() != "" }, "Another client sets a field that the item sets too. Remove the field from one of them."},
	{SymptomFight, func(s situation) bool { return s.workers() > 1 }, "Restrict the deployers by target selectors, item selectors or namespaces, so that one of them is responsible."},
	{SymptomNothingToDo, func(s situation) bool { return s.d.Reason == "Finished" && !s.failed() && !s.d.Held }, "There is nothing to do. The next job starts when Landscaper hands it out."},
}

// advise returns the advice for an explanation.
func advise(f *Facts, e *Explanation, d contract.Decision) []Advice {
	s := situation{Facts: f, e: e, d: d}
	var out []Advice
	for _, r := range rules {
		if r.when(s) {
			out = append(out, Advice{Symptom: r.symptom, Text: r.text})
		}
	}
	if len(out) > 1 { // there is something to do
		out = slices.DeleteFunc(out, func(a Advice) bool { return a.Symptom == SymptomNothingToDo })
	}
	return out
}

func reason(r contract.Reason) func(situation) bool {
	return func(s situation) bool { return s.d.Reason == r }
}

func failedWith(text string) func(situation) bool {
	return func(s situation) bool { return s.failureHas(text) }
}

func (s situation) phase() string  { return string(s.Item.Status.Phase) }
func (s situation) deleting() bool { return s.Item.DeletionTimestamp != nil }

func (s situation) managed() bool {
	_, ok := s.Item.Labels[lsv1alpha1.ExecutionManagedByLabel]
	return ok
}

// failed reports whether the last run failed and nothing new is due.
func (s situation) failed() bool {
	return (s.phase() == lsv1alpha1.PhaseStringFailed || s.phase() == lsv1alpha1.PhaseStringDeleteFailed) && !s.d.Due
}

// running reports whether a run is due, begun or not.
func (s situation) running() bool { return s.d.Due && !s.d.Expired }

// waitsForDeployer reports whether a run is due that no deployer has begun.
func (s situation) waitsForDeployer() bool { return s.d.Due && s.d.New }

// inInit reports whether a run has begun, and has said nothing since.
func (s situation) inInit() bool {
	return s.d.Due && !s.d.New && (s.phase() == lsv1alpha1.PhaseStringInit || s.phase() == lsv1alpha1.PhaseStringInitDelete)
}

// noneResponsible reports whether no known deployer is responsible.
func (s situation) noneResponsible() bool {
	return !slices.ContainsFunc(s.e.Responsible.Registrations, func(r Registration) bool { return r.Responsible != no })
}

// workers returns the number of responsible deployers that work.
func (s situation) workers() (n int) {
	for _, r := range s.e.Responsible.Registrations {
		if r.Responsible == yes && r.Working {
			n++
		}
	}
	return n
}

func (s situation) works() bool { return s.workers() > 0 }

// stopped reports whether a known deployer is responsible and none of them works.
func (s situation) stopped() bool {
	return !s.works() && slices.ContainsFunc(s.e.Responsible.Registrations, func(r Registration) bool { return r.Responsible == yes })
}

// long reports whether the run was requested a while ago.
func (s situation) long() bool {
	since := requested(s.Facts)
	return since != nil && s.Now.Sub(since.Time) > settled
}

// failureHas reports whether the error of the item contains a text.
func (s situation) failureHas(text string) bool {
	for _, e := range []*Error{s.e.Outcome.LastError, s.e.Outcome.FirstError} {
		if e != nil && strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}

// failsFor reports whether the error of the item has a code.
func (s situation) failsFor(code string) bool {
	for _, e := range []*Error{s.e.Outcome.LastError, s.e.Outcome.FirstError} {
		if e != nil && slices.Contains(e.Codes, code) {
			return true
		}
	}
	return false
}

// refusedTarget reports whether the kubeconfig of the Target was rejected.
func (s situation) refusedTarget() bool {
	return s.failureHas("kubeconfig") && (s.failsFor("ERR_CONFIGURATION_PROBLEM") || s.failureHas("not allowed"))
}

// fight returns the event of a fight.
func (s situation) fight() string {
	for _, e := range slices.Backward(s.Events) {
		if strings.Contains(e.Message, "(a fight with ") {
			return e.Message
		}
	}
	return ""
}
