// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Names of the annotation revision that newer versions of the Landscaper API module no longer define.
const (
	// AbortOperation asks the deployer to stop gracefully and to end the run as failed.
	AbortOperation lsv1alpha1.Operation = "abort"
	// AbortTimestampAnnotation holds the time, in RFC 3339, at which the abort was requested.
	AbortTimestampAnnotation = lsv1alpha1.LandscaperDomain + "/abort-time"
	// AbortingTimeoutReason is the reason of lastError if Abort did not end in time.
	AbortingTimeoutReason = "AbortingTimeout"
	// AbortingTimeoutOperation is the operation of lastError if Abort did not end in time.
	AbortingTimeoutOperation = "WaitingForAbort"
	// progressingTimeoutOperation is the operation of lastError if a run did not end in time.
	progressingTimeoutOperation = "WaitingForCompletion"
)

// PausedAnnotation with the value "true" holds back new runs of an item: jobs, operations, background runs and
// deletions. A run in progress continues, and an abort still takes effect. See [Decision.Paused].
const PausedAnnotation = "deployerkit.dev/paused"

// Condition types that belong to the library. Deployers and hooks must not write them; the library restores them.
const (
	// ConditionBackground reports on the background runs of a finished job-ID item. It is True while a background run
	// is pending and False after the last one ended; the reason says how. It is Unknown with the reason HookFailed if a
	// hook failed outside a job.
	ConditionBackground lsv1alpha1.ConditionType = "BackgroundReconcile"
	// ConditionDeployed is False on an item whose run started before anything was ever deployed. Otherwise it is
	// absent.
	ConditionDeployed lsv1alpha1.ConditionType = "Deployed"
	// ConditionWaiting is True while the deployer reports that it is not done yet. Otherwise it is absent.
	ConditionWaiting lsv1alpha1.ConditionType = "Waiting"
	// ConditionPaused becomes True when [PausedAnnotation] holds something back, and stays until the pause ends.
	// Otherwise it is absent.
	ConditionPaused lsv1alpha1.ConditionType = "Paused"
	// ConditionTruncated is True if the library dropped conditions since the run started. Its message says how many.
	ConditionTruncated lsv1alpha1.ConditionType = "ConditionsTruncated"
)

// ownConditions lists the types above.
var ownConditions = []lsv1alpha1.ConditionType{
	ConditionBackground, ConditionDeployed, ConditionWaiting, ConditionPaused, ConditionTruncated,
}

// OwnConditions returns the types of the conditions that belong to the library.
func OwnConditions() []lsv1alpha1.ConditionType { return slices.Clone(ownConditions) }

// AbortedReason is the reason of lastError if Abort ended the run.
const AbortedReason = "Aborted"

// Other reasons of lastError.
const (
	errorReasonDeployerFailed = "DeployerFailed" // the deployer set a failed phase and returned no error
	errorReasonInvalidPhase   = "InvalidPhase"   // the deployer left a phase that it must not set
)

// Reasons of conditions.
const (
	conditionReasonSucceeded  = "Succeeded"  // ConditionBackground=False: the run succeeded
	conditionReasonFailed     = "Failed"     // ConditionBackground: True if the run will be retried, False if it will not
	conditionReasonTimedOut   = "TimedOut"   // ConditionBackground=False: the deadline passed
	conditionReasonWaiting    = "Waiting"    // ConditionBackground=True, ConditionWaiting: the deployer waits
	conditionReasonHookFailed = "HookFailed" // ConditionBackground=Unknown, and lastError: a hook failed outside a job
	conditionReasonHeldBack   = "HeldBack"   // ConditionPaused=True: something waits for the end of the pause
)

// DefaultTimeout is the timeout of a run whose item sets none. It is Landscaper's own default.
const DefaultTimeout = 10 * time.Minute

// AbortTimeout is the time that Abort may take. It is Landscaper's default for the annotation revision.
const AbortTimeout = 5 * time.Minute

// managedByLabel is the label of items that an Execution manages.
const managedByLabel = lsv1alpha1.ExecutionManagedByLabel
