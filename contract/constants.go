// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// These names belong to the older revision of the contract, [RevisionAnnotation]. Newer versions of the Landscaper API
// module no longer define them.
const (
	// AbortOperation is the operation that asks the deployer to stop gracefully and to end the run as failed.
	AbortOperation lsv1alpha1.Operation = "abort"
	// AbortTimestampAnnotation contains the time at which the abort was requested, in RFC 3339.
	AbortTimestampAnnotation = lsv1alpha1.LandscaperDomain + "/abort-time"
	// AbortingTimeoutReason is the reason of lastError if Abort did not end in time.
	AbortingTimeoutReason = "AbortingTimeout"
	// AbortingTimeoutOperation is the operation of lastError if Abort did not end in time.
	AbortingTimeoutOperation = "WaitingForAbort"
	// progressingTimeoutOperation is the operation of lastError if a run did not end in time.
	progressingTimeoutOperation = "WaitingForCompletion"
)

// PausedAnnotation is the annotation that pauses an item if its value is "true". While an item is paused, no new run
// starts: no job, operation, background run or deletion. A run in progress continues, and an abort still takes effect.
// See [Decision.Paused].
const PausedAnnotation = "deployerkit.dev/paused"

// These condition types belong to the library. Deployers and hooks must not write conditions of these types; the
// library undoes such writes.
const (
	// ConditionBackground shows the background runs of an item. A background run reconciles an item whose job is
	// finished; only items that follow [RevisionJobID] have such runs. The condition is True while a background run is
	// pending. It is False after the last background run has ended; its reason then shows how this run ended. It is
	// Unknown with the reason HookFailed if a hook failed while no run was due.
	ConditionBackground lsv1alpha1.ConditionType = "BackgroundReconcile"
	// ConditionDeployed is False if a run could not call the deployer and nothing has ever been deployed for the item.
	// It is never True: the library removes the condition before it calls the deployer for the first time.
	ConditionDeployed lsv1alpha1.ConditionType = "Deployed"
	// ConditionWaiting is True while the deployer or a hook reports that it is not done yet, and while a hook stops a run
	// that is due. Otherwise it is absent.
	ConditionWaiting lsv1alpha1.ConditionType = "Waiting"
	// ConditionPaused becomes True when [PausedAnnotation] holds back a run, and stays True until the pause ends.
	// Otherwise it is absent.
	ConditionPaused lsv1alpha1.ConditionType = "Paused"
	// ConditionTruncated is True if the library has dropped conditions since the run started. The message contains the
	// number of dropped conditions.
	ConditionTruncated lsv1alpha1.ConditionType = "ConditionsTruncated"
)

// conditionTypes lists the condition types that belong to the library.
var conditionTypes = []lsv1alpha1.ConditionType{
	ConditionBackground, ConditionDeployed, ConditionWaiting, ConditionPaused, ConditionTruncated,
}

// AllConditionTypes returns the types of the conditions that belong to the library.
func AllConditionTypes() []lsv1alpha1.ConditionType { return slices.Clone(conditionTypes) }

// AbortedReason is the reason of lastError if Abort ended the run.
const AbortedReason = "Aborted"

// The library sets lastError with one of these reasons if the deployer has set a failed phase, or a phase that it must
// not set.
const (
	errorReasonDeployerFailed = "DeployerFailed" // the deployer set a failed phase, but returned no error
	errorReasonInvalidPhase   = "InvalidPhase"   // the deployer set a phase that it must not set
)

// These constants are the reasons of conditions.
const (
	conditionReasonSucceeded  = "Succeeded"     // ConditionBackground=False: the run succeeded
	conditionReasonFailed     = "Failed"        // ConditionBackground: True if the run will be retried, False if it will not
	conditionReasonTimedOut   = "TimedOut"      // ConditionBackground=False: the deadline passed
	conditionReasonWaiting    = "Waiting"       // ConditionBackground=True or ConditionWaiting=True: the deployer waits
	conditionReasonStopped    = "StoppedByHook" // ConditionWaiting=True: a hook stops a run that is due
	conditionReasonHookFailed = "HookFailed"    // ConditionBackground or lastError: a hook failed while no run was due
	conditionReasonHeldBack   = "HeldBack"      // ConditionPaused=True: a run waits for the end of the pause
)

// DefaultTimeout is the timeout of a run if the item does not set spec.timeout. Landscaper has the same default.
const DefaultTimeout = 10 * time.Minute

// AbortTimeout is the maximum duration of Abort. Under [RevisionAnnotation], Landscaper has the same default.
const AbortTimeout = 5 * time.Minute

// managedByLabel is the label of items that an Execution manages.
const managedByLabel = lsv1alpha1.ExecutionManagedByLabel
