// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

var (
	errBoom   = errors.New("boom")
	errConfig = lserrors.NewError("op", "BadConfig", "no", lsv1alpha1.ErrorConfigurationProblem)
)

// formatOutcome describes an outcome in the form that the tables use: how the call ends, the phase, and the reason of
// lastError.
func formatOutcome(o contract.Outcome) string {
	s := "again"
	switch {
	case o.Done && o.Final:
		s = "done+final"
	case o.Done:
		s = "done"
	case o.Final:
		s = "final"
	case o.Waiting:
		s = "wait"
	}
	if o.Phase != "" {
		s += " " + string(o.Phase)
	}
	if o.Err != nil {
		s += " " + o.Err.Reason
	}
	if o.Consumed {
		s += " consumed"
	}
	return s
}

// TestDetermineOutcomeOfSuccessfulJob covers a call that returned nil under the job-ID revision, for every phase that
// the deployer may have set.
func TestDetermineOutcomeOfSuccessfulJob(t *testing.T) {
	t.Parallel()
	matrix := []struct {
		left                              phase
		reconcile, force, forceOnDeletion string
		delete                            string
	}{
		{"", "done+final Succeeded", "done+final Succeeded consumed", "done consumed", "done"},
		{phInit, "done+final Succeeded", "done+final Succeeded consumed", "done consumed", "final DeleteFailed InvalidPhase"},
		{phSucceeded, "done+final Succeeded", "done+final Succeeded consumed", "done consumed", "done"},
		{phProgressing, "wait Progressing", "wait Progressing consumed", "wait Deleting consumed", "wait Deleting"},
		{phFailed, "final Failed DeployerFailed", "final Failed DeployerFailed consumed", "final DeleteFailed DeployerFailed consumed", "final DeleteFailed DeployerFailed"},
		{phInitDelete, "final Failed InvalidPhase", "final Failed InvalidPhase consumed", "final DeleteFailed InvalidPhase consumed", "done"},
		{phDeleting, "final Failed InvalidPhase", "final Failed InvalidPhase consumed", "final DeleteFailed InvalidPhase consumed", "wait Deleting"},
		{phDeleteFailed, "final Failed InvalidPhase", "final Failed InvalidPhase consumed", "final DeleteFailed InvalidPhase consumed", "final DeleteFailed DeployerFailed"},
		{phCompleting, "final Failed InvalidPhase", "final Failed InvalidPhase consumed", "final DeleteFailed InvalidPhase consumed", "final DeleteFailed InvalidPhase"},
		{phAborted, "final Failed InvalidPhase", "final Failed InvalidPhase consumed", "final DeleteFailed InvalidPhase consumed", "final DeleteFailed InvalidPhase"},
		{phUnknown, "final Failed InvalidPhase", "final Failed InvalidPhase consumed", "final DeleteFailed InvalidPhase consumed", "final DeleteFailed InvalidPhase"},
	}
	if len(matrix) != len(allPhases) {
		t.Fatalf("%d rows for %d phases", len(matrix), len(allPhases))
	}
	for _, row := range matrix {
		t.Run(fmt.Sprintf("%q [C9] [C10]", row.left), func(t *testing.T) {
			t.Parallel()
			for _, tc := range []struct {
				action   contract.Action
				deleting bool
				want     string
			}{
				{contract.ActionReconcile, false, row.reconcile},
				{contract.ActionForceReconcile, false, row.force},
				{contract.ActionForceReconcile, true, row.forceOnDeletion},
				{contract.ActionDelete, true, row.delete},
				{contract.ActionAbort, false, "final Failed Aborted consumed"},
				{contract.ActionAbort, true, "final DeleteFailed Aborted consumed"},
			} {
				o := contract.DetermineOutcome(contract.CallResult{
					Revision: contract.RevisionJobID, Action: tc.action, Deleting: tc.deleting, Phase: row.left, Now: epoch,
				})
				if got := formatOutcome(o); got != tc.want {
					t.Errorf("%s (deleting %t): %q, want %q", tc.action, tc.deleting, got, tc.want)
				}
				internal := o.Err != nil && slices.Contains(o.Err.Codes, lsv1alpha1.ErrorInternalProblem)
				if invalid := o.Err != nil && o.Err.Reason == "InvalidPhase"; invalid != internal {
					t.Errorf("%s: codes %v", tc.action, o.Err.Codes)
				}
			}
		})
	}
}

func TestDetermineOutcomeOfSuccessfulAnnotationRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		r    contract.CallResult
		want string
	}{
		"Delete keeps the phase Init":          {contract.CallResult{Action: contract.ActionDelete, Phase: phInit}, "done"},
		"Delete sets the phase InitDelete":     {contract.CallResult{Action: contract.ActionDelete, Phase: phInitDelete}, "final Failed InvalidPhase"},
		"Delete sets the phase Deleting":       {contract.CallResult{Action: contract.ActionDelete, Phase: phDeleting}, "wait Deleting"},
		"Delete sets the phase Failed":         {contract.CallResult{Action: contract.ActionDelete, Phase: phFailed}, "final Failed DeployerFailed"},
		"Delete sets the phase DeleteFailed":   {contract.CallResult{Action: contract.ActionDelete, Phase: phDeleteFailed}, "final Failed DeployerFailed"},
		"Delete returns a configuration error": {contract.CallResult{Action: contract.ActionDelete, Err: errConfig}, "final Failed BadConfig"},
		"Abort ends a deletion":                {contract.CallResult{Action: contract.ActionAbort, Deleting: true}, "final Failed Aborted consumed"},
		"Reconcile keeps the phase Init":       {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit}, "done+final Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.r.Revision = contract.RevisionAnnotation
			tc.r.Deleting = tc.r.Deleting || tc.r.Action == contract.ActionDelete
			if got := formatOutcome(contract.DetermineOutcome(tc.r)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestDetermineOutcomeOfErrors covers a call that returned an error.
func TestDetermineOutcomeOfErrors(t *testing.T) {
	t.Parallel()
	rec, force, del, abort := contract.ActionReconcile, contract.ActionForceReconcile, contract.ActionDelete, contract.ActionAbort
	for name, tc := range map[string]struct {
		reason string
		r      contract.CallResult
		want   string
	}{
		"error of Reconcile":                                        {"tried again", contract.CallResult{Action: rec, Err: errBoom, Phase: phInit}, "again ReconcileFailed"},
		"error with the phase Progressing":                          {"the rest makes progress", contract.CallResult{Action: rec, Err: errBoom, Phase: phProgressing}, "again Progressing ReconcileFailed"},
		"error with the phase Deleting":                             {"the rest makes progress", contract.CallResult{Action: del, Err: errBoom, Phase: phDeleting}, "again Deleting DeleteFailed"},
		"error with the phase Succeeded":                            {"the error wins", contract.CallResult{Action: rec, Err: errBoom, Phase: phSucceeded}, "again ReconcileFailed"},
		"error with the phase Failed":                               {"the deployer's verdict is kept", contract.CallResult{Action: rec, Err: errBoom, Phase: phFailed}, "final Failed ReconcileFailed"},
		"error with the phase DeleteFailed":                         {"the deployer's verdict is kept", contract.CallResult{Action: del, Err: errBoom, Phase: phDeleteFailed}, "final DeleteFailed DeleteFailed"},
		"error with an unknown phase":                               {"the error wins", contract.CallResult{Action: rec, Err: errBoom, Phase: phUnknown}, "again ReconcileFailed"},
		"error with an unrecoverable code":                          {"pointless to retry", contract.CallResult{Action: rec, Err: errConfig}, "final Failed BadConfig"},
		"wrapped error with an unrecoverable code":                  {"found inside", contract.CallResult{Action: rec, Err: fmt.Errorf("x: %w", errConfig)}, "final Failed BadConfig"},
		"joined error with an unrecoverable code [H-15]":            {"found inside", contract.CallResult{Action: rec, Err: errors.Join(errBoom, errConfig)}, "final Failed BadConfig"},
		"error of Delete with an unrecoverable code":                {"DeleteFailed", contract.CallResult{Action: del, Err: errConfig}, "final DeleteFailed BadConfig"},
		"error with a recoverable code":                             {"tried again", contract.CallResult{Action: rec, Err: lserrors.NewError("o", "Hook", "m", lsv1alpha1.ErrorWebhook)}, "again Hook"},
		"wait in Reconcile":                                         {"not a failure", contract.CallResult{Action: rec, Waiting: true, Message: "pods"}, "wait Progressing"},
		"wait with the phase Failed":                                {"waiting wins over the phase", contract.CallResult{Action: rec, Waiting: true, Phase: phFailed}, "wait Progressing"},
		"wait in Delete":                                            {"Deleting", contract.CallResult{Action: del, Waiting: true}, "wait Deleting"},
		"wait that is joined with an error":                         {"the error wins", contract.CallResult{Action: rec, Waiting: true, Err: errBoom}, "again ReconcileFailed"},
		"wait in Abort":                                             {"not aborted yet", contract.CallResult{Action: abort, Waiting: true}, "wait"},
		"error of Abort":                                            {"tried until its deadline", contract.CallResult{Action: abort, Err: errBoom}, "again AbortFailed"},
		"error of Abort with an unrecoverable code":                 {"even then", contract.CallResult{Action: abort, Err: errConfig, Phase: phFailed}, "again BadConfig"},
		"error of ForceReconcile [Lx8]":                             {"the annotation stays", contract.CallResult{Action: force, Err: errBoom}, "again ForceReconcileFailed"},
		"error of ForceReconcile with an unrecoverable code [Lx8]":  {"would repeat without end", contract.CallResult{Action: force, Err: errConfig}, "final Failed BadConfig consumed"},
		"wait in ForceReconcile [Lx8]":                              {"later polls reconcile", contract.CallResult{Action: force, Waiting: true}, "wait Progressing consumed"},
		"nil pointer as error":                                      {"an error that says so", contract.CallResult{Action: rec, Err: (*lserrors.Error)(nil)}, "again ReconcileFailed"},
		"result without an action":                                  {"judged like Reconcile", contract.CallResult{}, "done+final Succeeded"},
		"Reconcile of a deleted item under the annotation revision": {"Delete follows", contract.CallResult{Action: rec, Phase: phInit}, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.r.Revision, tc.r.Now = contract.RevisionJobID, epoch
			tc.r.Deleting = tc.r.Action == del || tc.want == "done"
			if got := formatOutcome(contract.DetermineOutcome(tc.r)); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDetermineOutcomeMessages(t *testing.T) {
	t.Parallel()
	own := &lsv1alpha1.Error{Message: "two\nlines", Codes: []lsv1alpha1.ErrorCode{"X"}}
	stamped := func(e lsv1alpha1.Error) *lsv1alpha1.Error {
		e.LastTransitionTime, e.LastUpdateTime = metaAfterMinutes(0), metaAfterMinutes(0)
		return &e
	}
	for name, tc := range map[string]struct {
		r    contract.CallResult
		want *lsv1alpha1.Error
	}{
		"failure without an error gets a message [C10]": {
			contract.CallResult{Action: contract.ActionReconcile, Phase: phFailed},
			stamped(lsv1alpha1.Error{Operation: "Reconcile", Reason: "DeployerFailed", Message: "the deployer set phase Failed and returned no error"}),
		},
		"error that the deployer set is kept [C10]": {
			contract.CallResult{Action: contract.ActionDelete, Phase: phDeleteFailed, LastError: own},
			stamped(lsv1alpha1.Error{Operation: "Delete", Reason: "DeployerFailed", Message: "two; lines", Codes: own.Codes}),
		},
		"empty error that the deployer set is replaced [C10]": {
			contract.CallResult{Action: contract.ActionReconcile, Phase: phFailed, LastError: &lsv1alpha1.Error{Operation: "x"}},
			stamped(lsv1alpha1.Error{Operation: "Reconcile", Reason: "DeployerFailed", Message: "the deployer set phase Failed and returned no error"}),
		},
		"abort replaces the error that the deployer set [C4]": {
			contract.CallResult{Action: contract.ActionAbort, Phase: phSucceeded, LastError: own},
			stamped(lsv1alpha1.Error{Operation: "Abort", Reason: "Aborted", Message: "the run was aborted"}),
		},
		"abort names the last wait [F64]": {
			contract.CallResult{Action: contract.ActionAbort, Cause: &lsv1alpha1.Error{Message: "Deployment.apps a/b: is not ready"}},
			stamped(lsv1alpha1.Error{Operation: "Abort", Reason: "Aborted", Message: "the run was aborted; last error: Deployment.apps a/b: is not ready"}),
		},
		"error of an earlier run is not repeated": {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit, LastError: own}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.r.Now, tc.r.Revision = epoch, contract.RevisionJobID
			if diff := cmp.Diff(tc.want, contract.DetermineOutcome(tc.r).Err); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestEndedByLibrary(t *testing.T) {
	t.Parallel()
	e := contract.NewTimeoutError(nil, 0, epoch)
	if got := formatOutcome(contract.EndedByLibrary(contract.RevisionJobID, true, e)); got != "final DeleteFailed ProgressingTimeout consumed" {
		t.Errorf("EndedByLibrary(...) = %q, want %q", got, "final DeleteFailed ProgressingTimeout consumed")
	}
	if got := formatOutcome(contract.EndedByLibrary(contract.RevisionAnnotation, true, e)); got != "final Failed ProgressingTimeout consumed" {
		t.Errorf("EndedByLibrary(...) = %q, want %q", got, "final Failed ProgressingTimeout consumed")
	}
}

// TestDetermineOutcomeKeepsPhase tests KeepPhase, with which a ported deployer manages the phase itself.
func TestDetermineOutcomeKeepsPhase(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		r    contract.CallResult
		want string
	}{
		"Reconcile keeps the phase Init":            {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit}, "wait Init"},
		"Reconcile sets the phase Progressing":      {contract.CallResult{Action: contract.ActionReconcile, Phase: phProgressing}, "wait Progressing"},
		"Reconcile sets the phase Succeeded":        {contract.CallResult{Action: contract.ActionReconcile, Phase: phSucceeded}, "done+final Succeeded"},
		"Reconcile sets the phase Failed":           {contract.CallResult{Action: contract.ActionReconcile, Phase: phFailed}, "final Failed DeployerFailed"},
		"Reconcile sets the phase Deleting":         {contract.CallResult{Action: contract.ActionReconcile, Phase: phDeleting}, "final Failed InvalidPhase"},
		"Reconcile fails in Init":                   {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit, Err: errBoom}, "again Init ReconcileFailed"},
		"Reconcile fails in Progressing":            {contract.CallResult{Action: contract.ActionReconcile, Phase: phProgressing, Err: errBoom}, "again Progressing ReconcileFailed"},
		"Reconcile fails in Succeeded":              {contract.CallResult{Action: contract.ActionReconcile, Phase: phSucceeded, Err: errBoom}, "again ReconcileFailed"},
		"Reconcile fails in Failed":                 {contract.CallResult{Action: contract.ActionReconcile, Phase: phFailed, Err: errBoom}, "final Failed ReconcileFailed"},
		"Reconcile returns an unrecoverable error":  {contract.CallResult{Action: contract.ActionReconcile, Phase: phProgressing, Err: errConfig}, "final Failed BadConfig"},
		"Delete fails in InitDelete":                {contract.CallResult{Action: contract.ActionDelete, Phase: phInitDelete, Err: errBoom}, "again InitDelete DeleteFailed"},
		"Delete fails in Deleting":                  {contract.CallResult{Action: contract.ActionDelete, Phase: phDeleting, Err: errBoom}, "again Deleting DeleteFailed"},
		"Delete fails in Progressing":               {contract.CallResult{Action: contract.ActionDelete, Phase: phProgressing, Err: errBoom}, "again DeleteFailed"},
		"Delete sets no phase":                      {contract.CallResult{Action: contract.ActionDelete}, "done"},
		"ForceReconcile sets the phase Progressing": {contract.CallResult{Action: contract.ActionForceReconcile, Phase: phProgressing}, "wait Progressing consumed"},
		"ForceReconcile fails in Progressing":       {contract.CallResult{Action: contract.ActionForceReconcile, Phase: phProgressing, Err: errBoom}, "again Progressing ForceReconcileFailed"},
		"WaitFor precedes the phase":                {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit, Waiting: true}, "wait Progressing"},
	} {
		t.Run(name+" [F44]", func(t *testing.T) {
			t.Parallel()
			tc.r.Revision, tc.r.KeepPhase, tc.r.Deleting = contract.RevisionJobID, true, tc.r.Action == contract.ActionDelete
			if got := formatOutcome(contract.DetermineOutcome(tc.r)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
