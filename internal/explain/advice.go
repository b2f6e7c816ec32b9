// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/managed"
)

// These constants are the symptoms. Each symptom is the title of a section in docs/troubleshooting.md.
const (
	SymptomNotPickedUp  = "not picked up"
	SymptomInit         = "stuck in Init"
	SymptomProgressing  = "Progressing"
	SymptomFailed       = "Failed"
	SymptomDeleting     = "stuck in Deleting"
	SymptomFight        = "fights"
	SymptomTarget       = "refused target"
	SymptomPermissions  = "missing permissions"
	SymptomFormer       = "former clusters"
	SymptomUnknown      = "unknown objects"
	SymptomNothingToDo  = "nothing to do"
	stuckAfter          = 30 * time.Second // a run that was requested more recently does not count as stuck
	operationAnnotation = lsv1alpha1.OperationAnnotation
)

// AllSymptoms returns the symptoms for which there is advice.
func AllSymptoms() []string {
	return []string{
		SymptomNotPickedUp, SymptomInit, SymptomProgressing, SymptomFailed, SymptomDeleting, SymptomFight, SymptomTarget, SymptomPermissions,
		SymptomFormer, SymptomUnknown, SymptomNothingToDo,
	}
}

// situation contains what the rules depend on: the facts, the explanation and the decision.
type situation struct {
	*Facts

	e *Explanation
	d contract.Decision
}

// rule is a piece of advice and the condition under which it applies.
type rule struct {
	symptom string
	when    func(situation) bool
	text    string
}

// rules contains all rules. An explanation lists its advice in this order.
var rules = []rule{
	{SymptomNotPickedUp, func(s situation) bool { return s.d.BlockedByPause }, "Remove the annotation deployerkit.dev/paused to let the run begin."},
	{SymptomNotPickedUp, matchReason("Ignored"), "Remove the annotation landscaper.gardener.cloud/ignore to let the item run again."},
	{
		SymptomNotPickedUp, func(s situation) bool { return s.d.Reason == "NeverRun" && !s.isManaged() },
		"No Execution manages the item. Annotate it with " + operationAnnotation + "=test-reconcile to start a first run by hand.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool {
			return s.isManaged() && slices.Contains([]contract.Reason{"AwaitingJob", "NeverRun", "GenerationMoved", "NotFinal"}, s.d.Reason)
		},
		"Look at the Execution and its Installation with deployerkit tree: Landscaper hands out the job when everything on which the item depends has succeeded.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool {
			return s.isWaitingForDeployer() && s.e.Responsible.hasNoDeployer() && len(s.e.Responsible.Registrations) == 1
		},
		"Compare the type and the Target of the item with the deployer above, or install a deployer for the type.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool {
			return s.isWaitingForDeployer() && s.e.Responsible.hasNoDeployer() && len(s.e.Responsible.Registrations) > 1
		},
		"Compare the type and the Target of the item with the deployers above, or install a deployer for the type.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool {
			return s.isWaitingForDeployer() && len(s.e.Responsible.Registrations) == 0 && !s.isUnknown(partLeases)
		},
		"Check the type of the item for mistakes. If it is right, install a deployer for the type.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool { return s.isWaitingForDeployer() && s.getHookStopMessage() != "" },
		"A hook of the deployer stops the run before it starts. The reason for waiting names the hook. If the hook does not let the run start, Landscaper fails the item when its pickup timeout has passed (5 minutes by default).",
	},
	{
		SymptomNotPickedUp, func(s situation) bool { return s.isWaitingForDeployer() && s.e.Responsible.isStopped() },
		"The deployer does not run. Start it, and look at its log.",
	},
	{
		SymptomNotPickedUp, func(s situation) bool {
			return s.isWaitingForDeployer() && s.e.Responsible.countWorkers() > 0 && s.isOverdue() && s.getHookStopMessage() == ""
		},
		"The deployer is running but does not start the item. Check its readiness (/readyz) and its log: it may lack rights, or its workers may be busy.",
	},
	{
		SymptomInit, func(s situation) bool { return s.isInInit() && s.e.Responsible.isStopped() },
		"The replica that started the run has stopped. The run continues when a deployer runs again. Otherwise it fails at its deadline.",
	},
	{
		SymptomInit, func(s situation) bool {
			return s.isInInit() && !s.e.Responsible.isStopped() && s.e.Outcome.LastError == nil && !s.TargetMissing && !s.ContextMissing && s.getHookStopMessage() == ""
		},
		"The call of the deployer has not returned yet. Look at the log and the history of the deployer. If the call does not return, the run fails at its deadline.",
	},
	{
		SymptomInit, func(s situation) bool { return s.isInInit() && s.getHookStopMessage() != "" },
		"A hook of the deployer stops the run before the deployer is called. The reason for waiting names the hook. The run continues when the hook lets it. Otherwise the run fails at its deadline.",
	},
	{
		SymptomInit, func(s situation) bool {
			return s.isInInit() && s.e.Outcome.LastError != nil && s.getHookStopMessage() == ""
		},
		"The run fails again and again. The last error says why. The run is retried until its deadline.",
	},
	{SymptomInit, func(s situation) bool { return s.isRunning() && s.ContextMissing }, "Create the Context to which the item refers."},
	{SymptomTarget, func(s situation) bool { return s.isRunning() && s.TargetMissing }, "Create the Target to which the item refers, in the namespace of the item."},
	{
		SymptomProgressing, func(s situation) bool { return s.getPhase() == lsv1alpha1.PhaseStringProgressing && !s.d.Expired },
		"Look at the reason for waiting. The run continues when the item no longer has to wait. Otherwise the run fails at its deadline.",
	},
	{SymptomTarget, matchErrorText("AllowPrivateHosts"), "If the address is right, start the deployer with --allow-private-hosts."},
	{SymptomTarget, func(s situation) bool { return s.isTargetRefused() }, "Change the kubeconfig of the Target. The message names the field that is refused."},
	{
		SymptomPermissions, func(s situation) bool { return s.hasErrorCode("ERR_UNAUTHORIZED") || s.hasErrorText("forbidden") },
		"An account lacks a right. Grant the right that the message names, then start a new job.",
	},
	{SymptomPermissions, func(s situation) bool { return len(s.Unknown) > 0 }, "Parts of this explanation are unknown. Each entry names the right that you need to see that part."},
	{
		SymptomFailed, func(s situation) bool { return s.hasFailed() && s.hasErrorCode("ERR_CONFIGURATION_PROBLEM") },
		"Correct the configuration. A retry without a change fails in the same way.",
	},
	{
		SymptomFailed, func(s situation) bool { return s.hasFailed() && s.hasErrorCode("ERR_TIMEOUT") },
		"The run did not end in time. The message says why: see the first error and the end of the message. If the run needs more time, increase spec.timeout.",
	},
	{SymptomFailed, func(s situation) bool {
		return s.hasFailed() && s.d.Revision == contract.RevisionJobID && !s.isDeleting()
	}, "When the cause has been removed, start a new job: annotate the Installation with " + operationAnnotation + "=reconcile."},
	{SymptomFailed, func(s situation) bool {
		return s.hasFailed() && s.d.Revision == contract.RevisionAnnotation && !s.isDeleting()
	}, "When the cause has been removed, annotate the item with " + operationAnnotation + "=reconcile."},
	{SymptomDeleting, matchReason("NoFinalizer"), "A finalizer of another controller blocks the deletion. That controller has to remove the finalizer; see metadata.finalizers."},
	{
		SymptomDeleting, matchReason("DeletionPending"),
		"Delete the Installation, not the deploy item: Landscaper then hands out the job that deletes it. If you created the item yourself, annotate it with " + operationAnnotation + "=test-reconcile.",
	},
	{SymptomDeleting, func(s situation) bool { return s.isDeleting() && s.getPhase() == lsv1alpha1.PhaseStringDeleting }, "Look at the reason for waiting. Often, a controller in the target cluster does not remove its finalizer."},
	{
		SymptomDeleting, func(s situation) bool { return s.isDeleting() && (s.hasFailed() || s.TargetMissing) },
		"If the target cluster is gone, annotate the item with landscaper.gardener.cloud/delete-without-uninstall=true and start the deletion again. If the cluster still exists, the objects remain in it.",
	},
	{SymptomFight, func(s situation) bool { return s.findFightEvent() != "" }, "The item and another client set the same field. Make sure that only one of them sets it."},
	{SymptomFight, func(s situation) bool { return s.e.Responsible.countWorkers() > 1 }, "Restrict the deployers by target selectors, item selectors or namespaces, so that one of them is responsible."},
	{
		SymptomFormer, func(s situation) bool { return s.condition(managed.ConditionFormerClusters) != nil },
		"The item has left a cluster in which some of its objects remain or may remain. The condition FormerClusters names them, and the right or Target that the deployer needs. To leave the objects there, annotate the item with deployerkit.dev/release-former-clusters=true.",
	},
	{
		SymptomUnknown, func(s situation) bool { return s.condition(managed.ConditionUnknownObjects) != nil },
		"The target contains objects with the label and the annotations of the item that the item did not write. The condition UnknownObjects names them. Delete them, or remove the label deployerkit.dev/item from them.",
	},
	{SymptomNothingToDo, func(s situation) bool { return s.d.Reason == "Finished" && !s.hasFailed() && !s.d.BlockedByPause }, "There is nothing to do. The next job starts when Landscaper hands it out."},
}

// getAdvice returns the advice for an explanation.
func getAdvice(f *Facts, e *Explanation, d contract.Decision) []Advice {
	s := situation{Facts: f, e: e, d: d}
	var out []Advice
	for _, r := range rules {
		if r.when(s) {
			out = append(out, Advice{Symptom: r.symptom, Text: r.text})
		}
	}
	if len(out) > 1 { // if there is other advice, there is something to do
		out = slices.DeleteFunc(out, func(a Advice) bool { return a.Symptom == SymptomNothingToDo })
	}
	return out
}

func matchReason(r contract.Reason) func(situation) bool {
	return func(s situation) bool { return s.d.Reason == r }
}

func matchErrorText(text string) func(situation) bool {
	return func(s situation) bool { return s.hasErrorText(text) }
}

// condition returns a condition of the item, or nil if the condition does not exist or is not true.
func (s situation) condition(t lsv1alpha1.ConditionType) *lsv1alpha1.Condition {
	if c := contract.GetCondition(s.Item.Status.Conditions, t); c != nil && c.Status == lsv1alpha1.ConditionTrue {
		return c
	}
	return nil
}

func (s situation) getPhase() string { return string(s.Item.Status.Phase) }
func (s situation) isDeleting() bool { return s.Item.DeletionTimestamp != nil }

func (s situation) isManaged() bool {
	_, ok := s.Item.Labels[lsv1alpha1.ExecutionManagedByLabel]
	return ok
}

// hasFailed reports whether the last run failed and no new run is due.
func (s situation) hasFailed() bool {
	return (s.getPhase() == lsv1alpha1.PhaseStringFailed || s.getPhase() == lsv1alpha1.PhaseStringDeleteFailed) && !s.d.Due
}

// isRunning reports whether a run is due or in progress and its deadline has not passed.
func (s situation) isRunning() bool { return s.d.Due && !s.d.Expired }

// getHookStopMessage returns the message about a hook that stops the run, or "" if there is none.
func (s situation) getHookStopMessage() string { return contract.StoppedByHookMessage(s.Item) }

// isWaitingForDeployer reports whether a run is due and no deployer has begun it.
func (s situation) isWaitingForDeployer() bool { return s.d.Due && s.d.New }

// isInInit reports whether a run has begun but is still in its first phase, Init or InitDelete.
func (s situation) isInInit() bool {
	return s.d.Due && !s.d.New && (s.getPhase() == lsv1alpha1.PhaseStringInit || s.getPhase() == lsv1alpha1.PhaseStringInitDelete)
}

// hasNoDeployer reports whether no known deployer can be responsible for the item. It returns true if no deployer is
// known.
func (r Responsible) hasNoDeployer() bool {
	return !slices.ContainsFunc(r.Registrations, func(one Registration) bool { return one.Responsible != responsibleNo })
}

// countWorkers returns the number of deployers that are responsible and active.
func (r Responsible) countWorkers() (n int) {
	for _, one := range r.Registrations {
		if one.Responsible == responsibleYes && one.Working {
			n++
		}
	}
	return n
}

// isStopped reports whether there are responsible deployers, but none of them is active.
func (r Responsible) isStopped() bool {
	return r.countWorkers() == 0 && slices.ContainsFunc(r.Registrations, func(one Registration) bool { return one.Responsible == responsibleYes })
}

// isOverdue reports whether the run was requested so long ago that it may be stuck.
func (s situation) isOverdue() bool {
	since := getRequestTime(s.Facts)
	return since != nil && s.Now.Sub(since.Time) > stuckAfter
}

// hasErrorText reports whether the text of an error of the item contains the given text.
func (s situation) hasErrorText(text string) bool {
	for _, e := range []*Error{s.e.Outcome.LastError, s.e.Outcome.FirstError} {
		if e != nil && strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}

// hasErrorCode reports whether an error of the item has a given error code.
func (s situation) hasErrorCode(code string) bool {
	for _, e := range []*Error{s.e.Outcome.LastError, s.e.Outcome.FirstError} {
		if e != nil && slices.Contains(e.Codes, code) {
			return true
		}
	}
	return false
}

// isTargetRefused reports whether the kubeconfig of the Target was rejected.
func (s situation) isTargetRefused() bool {
	return s.hasErrorText("kubeconfig") && (s.hasErrorCode("ERR_CONFIGURATION_PROBLEM") || s.hasErrorText("not allowed"))
}

// findFightEvent returns the message of the newest event about a fight, or "" if there is none. In a fight, another
// client and the deployer change the same fields again and again.
func (s situation) findFightEvent() string {
	for _, e := range slices.Backward(s.Events) {
		if strings.Contains(e.Message, "(a fight with ") {
			return e.Message
		}
	}
	return ""
}
