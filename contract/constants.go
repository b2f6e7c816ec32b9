// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Names of the annotation revision that newer Landscaper API modules no longer carry.
const (
	// AbortOperation asks the deployer to stop gracefully and to end the run as failed.
	AbortOperation lsv1alpha1.Operation = "abort"
	// AbortTimestampAnnotation holds the RFC 3339 time at which the abort was asked for.
	AbortTimestampAnnotation = lsv1alpha1.LandscaperDomain + "/abort-time"
	// AbortingTimeoutReason is lastError's reason when Abort did not end in time.
	AbortingTimeoutReason = "AbortingTimeout"
	// AbortingTimeoutOperation is lastError's operation when Abort did not end in time.
	AbortingTimeoutOperation = "WaitingForAbort"
	// progressingTimeoutOperation is lastError's operation when a run did not end in time.
	progressingTimeoutOperation = "WaitingForCompletion"
)

// PausedAnnotation with the value "true" holds back new runs of an item: jobs, operations, background runs, deletions. A
// run in progress goes on to its end, and an abort is obeyed. See [Decision.Paused].
const PausedAnnotation = "deployerkit.dev/paused"

// Condition types that belong to the library. Deployers and hooks must not write them; the library restores them.
const (
	// ConditionBackground tells how background runs of a finished job-ID item go. True: a run is owed.
	// False: the last one ended, see the reason. Unknown with reason HookFailed: a hook failed outside a job.
	ConditionBackground lsv1alpha1.ConditionType = "BackgroundReconcile"
	// ConditionDeployed is False on an item whose run started while nothing was ever deployed; else absent.
	ConditionDeployed lsv1alpha1.ConditionType = "Deployed"
	// ConditionWaiting is True while the deployer says that it is not done yet; else absent.
	ConditionWaiting lsv1alpha1.ConditionType = "Waiting"
	// ConditionPaused is True from when [PausedAnnotation] held something back until the pause ends; else absent.
	ConditionPaused lsv1alpha1.ConditionType = "Paused"
	// ConditionTruncated is True if the library dropped conditions since the run started; its message says how many.
	ConditionTruncated lsv1alpha1.ConditionType = "ConditionsTruncated"
)

// ownConditions are the types above.
var ownConditions = []lsv1alpha1.ConditionType{
	ConditionBackground, ConditionDeployed, ConditionWaiting, ConditionPaused, ConditionTruncated,
}

// OwnConditions returns the types of the conditions that belong to the library.
func OwnConditions() []lsv1alpha1.ConditionType { return slices.Clone(ownConditions) }

// AbortedReason is lastError's reason when Abort ended the run.
const AbortedReason = "Aborted"

// Other reasons of lastError.
const (
	errorReasonDeployerFailed = "DeployerFailed" // the deployer set a failed phase and returned no error
	errorReasonInvalidPhase   = "InvalidPhase"   // the deployer left a phase that it must not set
)

// Reasons of conditions.
const (
	conditionReasonSucceeded  = "Succeeded"  // ConditionBackground=False: the run did what was asked
	conditionReasonFailed     = "Failed"     // ConditionBackground: True = will be tried again, False = given up
	conditionReasonTimedOut   = "TimedOut"   // ConditionBackground=False: given up at the deadline
	conditionReasonWaiting    = "Waiting"    // ConditionBackground=True, ConditionWaiting: the deployer waits
	conditionReasonHookFailed = "HookFailed" // ConditionBackground=Unknown, and lastError: a hook failed outside a job
	conditionReasonHeldBack   = "HeldBack"   // ConditionPaused=True: something waits for the end of the pause
)

// DefaultTimeout bounds a run whose item does not say otherwise. Source: the Landscaper's own default.
const DefaultTimeout = 10 * time.Minute

// AbortTimeout is how long Abort may take. Source: the Landscaper's default of the annotation revision.
const AbortTimeout = 5 * time.Minute

// managedByLabel is on items that an Execution manages.
const managedByLabel = lsv1alpha1.ExecutionManagedByLabel
