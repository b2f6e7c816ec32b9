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

// short describes an outcome in the form that the tables use: how the call ends, the phase, and the reason of
// lastError.
func short(o contract.Outcome) string {
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

// TestJudgeNil covers a call that returned nil under the job-ID revision, for every phase that the deployer may have
// set.
func TestJudgeNil(t *testing.T) {
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
	if len(matrix) != len(all) {
		t.Fatalf("%d rows for %d phases", len(matrix), len(all))
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
				o := contract.Judge(contract.CallResult{
					Revision: contract.RevisionJobID, Action: tc.action, Deleting: tc.deleting, Phase: row.left, Now: epoch,
				})
				if got := short(o); got != tc.want {
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

func TestJudgeAnnotation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		r    contract.CallResult
		want string
	}{
		"Delete, left alone":   {contract.CallResult{Action: contract.ActionDelete, Phase: phInit}, "done"},
		"Delete, InitDelete":   {contract.CallResult{Action: contract.ActionDelete, Phase: phInitDelete}, "final Failed InvalidPhase"},
		"Delete, Deleting":     {contract.CallResult{Action: contract.ActionDelete, Phase: phDeleting}, "wait Deleting"},
		"Delete, Failed":       {contract.CallResult{Action: contract.ActionDelete, Phase: phFailed}, "final Failed DeployerFailed"},
		"Delete, DeleteFailed": {contract.CallResult{Action: contract.ActionDelete, Phase: phDeleteFailed}, "final Failed DeployerFailed"},
		"Delete, config error": {contract.CallResult{Action: contract.ActionDelete, Err: errConfig}, "final Failed BadConfig"},
		"Abort of a deletion":  {contract.CallResult{Action: contract.ActionAbort, Deleting: true}, "final Failed Aborted consumed"},
		"Reconcile":            {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit}, "done+final Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.r.Revision = contract.RevisionAnnotation
			tc.r.Deleting = tc.r.Deleting || tc.r.Action == contract.ActionDelete
			if got := short(contract.Judge(tc.r)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestJudgeErrors covers a call that returned an error.
func TestJudgeErrors(t *testing.T) {
	t.Parallel()
	rec, force, del, abort := contract.ActionReconcile, contract.ActionForceReconcile, contract.ActionDelete, contract.ActionAbort
	for name, tc := range map[string]struct {
		reason string
		r      contract.CallResult
		want   string
	}{
		"error":                      {"tried again", contract.CallResult{Action: rec, Err: errBoom, Phase: phInit}, "again ReconcileFailed"},
		"error with Progressing":     {"the rest makes progress", contract.CallResult{Action: rec, Err: errBoom, Phase: phProgressing}, "again Progressing ReconcileFailed"},
		"error with Deleting":        {"the rest makes progress", contract.CallResult{Action: del, Err: errBoom, Phase: phDeleting}, "again Deleting DeleteFailed"},
		"error with Succeeded":       {"the error wins", contract.CallResult{Action: rec, Err: errBoom, Phase: phSucceeded}, "again ReconcileFailed"},
		"error with Failed":          {"the deployer's verdict is kept", contract.CallResult{Action: rec, Err: errBoom, Phase: phFailed}, "final Failed ReconcileFailed"},
		"error with DeleteFailed":    {"the deployer's verdict is kept", contract.CallResult{Action: del, Err: errBoom, Phase: phDeleteFailed}, "final DeleteFailed DeleteFailed"},
		"error with unknown phase":   {"the error wins", contract.CallResult{Action: rec, Err: errBoom, Phase: phUnknown}, "again ReconcileFailed"},
		"code":                       {"pointless to retry", contract.CallResult{Action: rec, Err: errConfig}, "final Failed BadConfig"},
		"code, wrapped":              {"found inside", contract.CallResult{Action: rec, Err: fmt.Errorf("x: %w", errConfig)}, "final Failed BadConfig"},
		"code, joined [H-15]":        {"found inside", contract.CallResult{Action: rec, Err: errors.Join(errBoom, errConfig)}, "final Failed BadConfig"},
		"code in Delete":             {"DeleteFailed", contract.CallResult{Action: del, Err: errConfig}, "final DeleteFailed BadConfig"},
		"harmless code":              {"tried again", contract.CallResult{Action: rec, Err: lserrors.NewError("o", "Hook", "m", lsv1alpha1.ErrorWebhook)}, "again Hook"},
		"waiting":                    {"not a failure", contract.CallResult{Action: rec, Waiting: true, Message: "pods"}, "wait Progressing"},
		"waiting, phase set":         {"waiting wins over the phase", contract.CallResult{Action: rec, Waiting: true, Phase: phFailed}, "wait Progressing"},
		"waiting in Delete":          {"Deleting", contract.CallResult{Action: del, Waiting: true}, "wait Deleting"},
		"waiting joined with error":  {"the error wins", contract.CallResult{Action: rec, Waiting: true, Err: errBoom}, "again ReconcileFailed"},
		"waiting in Abort":           {"not aborted yet", contract.CallResult{Action: abort, Waiting: true}, "wait"},
		"Abort error":                {"tried until its deadline", contract.CallResult{Action: abort, Err: errBoom}, "again AbortFailed"},
		"Abort unrecoverable":        {"even then", contract.CallResult{Action: abort, Err: errConfig, Phase: phFailed}, "again BadConfig"},
		"force error [Lx8]":          {"the annotation stays", contract.CallResult{Action: force, Err: errBoom}, "again ForceReconcileFailed"},
		"force unrecoverable [Lx8]":  {"would repeat without end", contract.CallResult{Action: force, Err: errConfig}, "final Failed BadConfig consumed"},
		"force waiting [Lx8]":        {"later polls reconcile", contract.CallResult{Action: force, Waiting: true}, "wait Progressing consumed"},
		"nil pointer as error":       {"an error that says so", contract.CallResult{Action: rec, Err: (*lserrors.Error)(nil)}, "again ReconcileFailed"},
		"no action":                  {"judged like Reconcile", contract.CallResult{}, "done+final Succeeded"},
		"Reconcile on a terminating": {"Delete follows", contract.CallResult{Action: rec, Phase: phInit}, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.r.Revision, tc.r.Now = contract.RevisionJobID, epoch
			tc.r.Deleting = tc.r.Action == del || tc.want == "done"
			if got := short(contract.Judge(tc.r)); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestJudgeTexts(t *testing.T) {
	t.Parallel()
	own := &lsv1alpha1.Error{Message: "two\nlines", Codes: []lsv1alpha1.ErrorCode{"X"}}
	stamped := func(e lsv1alpha1.Error) *lsv1alpha1.Error {
		e.LastTransitionTime, e.LastUpdateTime = val(0), val(0)
		return &e
	}
	for name, tc := range map[string]struct {
		r    contract.CallResult
		want *lsv1alpha1.Error
	}{
		"synthesised [C10]": {
			contract.CallResult{Action: contract.ActionReconcile, Phase: phFailed},
			stamped(lsv1alpha1.Error{Operation: "Reconcile", Reason: "DeployerFailed", Message: "the deployer set phase Failed and returned no error"}),
		},
		"the deployer's own [C10]": {
			contract.CallResult{Action: contract.ActionDelete, Phase: phDeleteFailed, LastError: own},
			stamped(lsv1alpha1.Error{Operation: "Delete", Reason: "DeployerFailed", Message: "two; lines", Codes: own.Codes}),
		},
		"an empty own one [C10]": {
			contract.CallResult{Action: contract.ActionReconcile, Phase: phFailed, LastError: &lsv1alpha1.Error{Operation: "x"}},
			stamped(lsv1alpha1.Error{Operation: "Reconcile", Reason: "DeployerFailed", Message: "the deployer set phase Failed and returned no error"}),
		},
		"aborted, whatever it set [C4]": {
			contract.CallResult{Action: contract.ActionAbort, Phase: phSucceeded, LastError: own},
			stamped(lsv1alpha1.Error{Operation: "Abort", Reason: "Aborted", Message: "the run was aborted"}),
		},
		"aborted, with what it waited for [F64]": {
			contract.CallResult{Action: contract.ActionAbort, Cause: &lsv1alpha1.Error{Message: "Deployment.apps a/b: is not ready"}},
			stamped(lsv1alpha1.Error{Operation: "Abort", Reason: "Aborted", Message: "the run was aborted; last error: Deployment.apps a/b: is not ready"}),
		},
		"left alone": {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit, LastError: own}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.r.Now, tc.r.Revision = epoch, contract.RevisionJobID
			if diff := cmp.Diff(tc.want, contract.Judge(tc.r).Err); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestTimedOut(t *testing.T) {
	t.Parallel()
	e := contract.TimeoutError(nil, 0, epoch)
	if got := short(contract.EndedByLibrary(contract.RevisionJobID, true, e)); got != "final DeleteFailed ProgressingTimeout consumed" {
		t.Error(got)
	}
	if got := short(contract.EndedByLibrary(contract.RevisionAnnotation, true, e)); got != "final Failed ProgressingTimeout consumed" {
		t.Error(got)
	}
}

// TestJudgeKeepPhase tests KeepPhase, with which a ported deployer manages the phase itself.
func TestJudgeKeepPhase(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		r    contract.CallResult
		want string
	}{
		"Reconcile leaves Init":                 {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit}, "wait Init"},
		"Reconcile leaves Progressing":          {contract.CallResult{Action: contract.ActionReconcile, Phase: phProgressing}, "wait Progressing"},
		"Reconcile leaves Succeeded":            {contract.CallResult{Action: contract.ActionReconcile, Phase: phSucceeded}, "done+final Succeeded"},
		"Reconcile leaves Failed":               {contract.CallResult{Action: contract.ActionReconcile, Phase: phFailed}, "final Failed DeployerFailed"},
		"Reconcile leaves Deleting":             {contract.CallResult{Action: contract.ActionReconcile, Phase: phDeleting}, "final Failed InvalidPhase"},
		"Reconcile fails in Init":               {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit, Err: errBoom}, "again Init ReconcileFailed"},
		"Reconcile fails in Progressing":        {contract.CallResult{Action: contract.ActionReconcile, Phase: phProgressing, Err: errBoom}, "again Progressing ReconcileFailed"},
		"Reconcile fails in Succeeded":          {contract.CallResult{Action: contract.ActionReconcile, Phase: phSucceeded, Err: errBoom}, "again ReconcileFailed"},
		"Reconcile fails in Failed":             {contract.CallResult{Action: contract.ActionReconcile, Phase: phFailed, Err: errBoom}, "final Failed ReconcileFailed"},
		"Reconcile fails for good":              {contract.CallResult{Action: contract.ActionReconcile, Phase: phProgressing, Err: errConfig}, "final Failed BadConfig"},
		"Delete fails in InitDelete":            {contract.CallResult{Action: contract.ActionDelete, Phase: phInitDelete, Err: errBoom}, "again InitDelete DeleteFailed"},
		"Delete fails in Deleting":              {contract.CallResult{Action: contract.ActionDelete, Phase: phDeleting, Err: errBoom}, "again Deleting DeleteFailed"},
		"Delete fails in Progressing":           {contract.CallResult{Action: contract.ActionDelete, Phase: phProgressing, Err: errBoom}, "again DeleteFailed"},
		"Delete, nothing left":                  {contract.CallResult{Action: contract.ActionDelete}, "done"},
		"ForceReconcile leaves Progressing":     {contract.CallResult{Action: contract.ActionForceReconcile, Phase: phProgressing}, "wait Progressing consumed"},
		"ForceReconcile fails in Progressing":   {contract.CallResult{Action: contract.ActionForceReconcile, Phase: phProgressing, Err: errBoom}, "again Progressing ForceReconcileFailed"},
		"WaitFor is the same, whatever it left": {contract.CallResult{Action: contract.ActionReconcile, Phase: phInit, Waiting: true}, "wait Progressing"},
	} {
		t.Run(name+" [F44]", func(t *testing.T) {
			t.Parallel()
			tc.r.Revision, tc.r.KeepPhase, tc.r.Deleting = contract.RevisionJobID, true, tc.r.Action == contract.ActionDelete
			if got := short(contract.Judge(tc.r)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
