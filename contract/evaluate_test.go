// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// decisionCase is one row of a table of expected decisions.
type decisionCase struct {
	reason string
	di     *lsv1alpha1.DeployItem
	want   contract.Decision
}

func runDecisions(t *testing.T, o contract.Options, cases map[string]decisionCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := contract.Evaluate(tc.di, o)
			tc.want.Revision = got.Revision
			if o.Revision != "" && got.Revision != o.Revision {
				t.Errorf("revision = %s, want %s", got.Revision, o.Revision)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEvaluateItemsThatMustNotRun(t *testing.T) {
	t.Parallel()
	ignore := note(lsv1alpha1.IgnoreAnnotation, "true")
	runDecisions(t, options(), map[string]decisionCase{
		"nil": {"no item", nil, contract.Decision{Reason: "NoItem"}},
		"ignored item that is finished [H-36]": {
			"ignore holds a finished item back", ran(phSucceeded, ignore, generation(9), op("reconcile")),
			contract.Decision{Reason: "Ignored"},
		},
		"ignored item that is finished, with a new job [H-36]": {
			"under both revisions", ran(phFailed, ignore, job("b", "a", 0)),
			contract.Decision{Reason: "Ignored"},
		},
		"ignored item with a run in progress": {
			"what runs ends", ran(phInit, ignore),
			contract.Decision{Action: contract.ActionReconcile, Due: true, Forceable: true, Reason: "InProgress"},
		},
		"item whose annotation ignore has another value": {
			"only true counts", ran(phSucceeded, note(lsv1alpha1.IgnoreAnnotation, "True")),
			contract.Decision{Action: contract.ActionReconcile, Forceable: true, Reason: "Finished"},
		},
		"deleted item without the finalizer of the library": {
			"the finalizer of another controller prevents the removal", ran(phProgressing, deleted(-1), op("force-reconcile")),
			contract.Decision{Reason: "NoFinalizer"},
		},
		"deleted item with a job and without the finalizer of the library": {
			"a deployer has nothing to do", ran(phSucceeded, deleted(-1), job("b", "a", 0)),
			contract.Decision{Reason: "NoFinalizer"},
		},
	})
}

// TestActionPrecedence checks the precedence of the actions under both revisions: abort, force-reconcile, delete,
// reconcile (row L35).
func TestActionPrecedence(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		di   *lsv1alpha1.DeployItem
		want contract.Action
	}{
		"abort during a run [L31]":              {ran(phProgressing, op("abort")), contract.ActionAbort},
		"abort precedes delete [L35]":           {ran(phProgressing, op("abort"), deleted(-1), finalizer), contract.ActionAbort},
		"force-reconcile during a run [L32]":    {ran(phProgressing, op("force-reconcile")), contract.ActionForceReconcile},
		"force-reconcile precedes delete [L35]": {ran(phProgressing, op("force-reconcile"), deleted(-1), finalizer), contract.ActionForceReconcile},
		"delete precedes reconcile [L33] [L35]": {ran(phProgressing, op("reconcile"), deleted(-1), finalizer), contract.ActionDelete},
		"reconcile is the default [L34]":        {ran(phProgressing), contract.ActionReconcile},
		"an unknown operation is ignored [L34]": {ran(phProgressing, op("dance")), contract.ActionReconcile},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.Evaluate(tc.di, annotated()); got.Action != tc.want || !got.Due {
				t.Errorf("annotation: %+v, want %s", got, tc.want)
			}
			job("a", "", -6)(tc.di)
			if got := contract.Evaluate(tc.di, jobOptions()); got.Action != tc.want || !got.Due {
				t.Errorf("job ID: %+v, want %s", got, tc.want)
			}
		})
	}
}

func TestEvaluateDeleteWithoutUninstall(t *testing.T) {
	t.Parallel()
	without := note(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true")
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		want bool
	}{
		"job deletes without uninstall [C12]":                 {ran(phSucceeded, without, deleted(0), finalizer, job("b", "a", 0)), true},
		"annotation deletes without uninstall [C12]":          {ran(phSucceeded, without, deleted(0), finalizer), true},
		"deletion after its deadline without uninstall [C12]": {ran(phDeleting, without, deleted(-60), finalizer, reconciled(-59)), true},
		"item that is not deleted [C12]":                      {ran(phProgressing, without), false},
		"annotation with another value [C12]":                 {ran(phSucceeded, note(lsv1alpha1.DeleteWithoutUninstallAnnotation, "yes"), deleted(0), finalizer), false},
		"force-reconcile precedes the deletion [C12]":         {ran(phSucceeded, without, deleted(0), finalizer, op("force-reconcile")), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := contract.Evaluate(tc.di, options())
			if got.SkipUninstall != tc.want || !got.Due || got.Expired {
				t.Errorf("got %+v, want SkipUninstall %t", got, tc.want)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	pending := job("b", "a", -30)
	initTime := func(minutes int) mod {
		return func(di *lsv1alpha1.DeployItem) {
			di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{InitTime: mt(minutes)}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		di     *lsv1alpha1.DeployItem
		want   bool
	}{
		"job at its deadline [H-3]":                    {"10 m by default", ran(phInit, pending, reconciled(-10)), true},
		"job before its deadline":                      {"one minute left", ran(phInit, pending, reconciled(-9)), false},
		"init time precedes lastReconcileTime [H-3]":   {"lastReconcileTime may be ahead", ran(phInit, pending, reconciled(-1), initTime(-10)), true},
		"timeout of the spec [H-3]":                    {"spec.timeout", ran(phInit, pending, timeout(5*time.Minute)), true},
		"timeout zero means none [H-2]":                {"none is no deadline, not an immediate one", ran(phInit, pending, reconciled(-600), timeout(0)), false},
		"negative timeout":                             {"a config error, not an expiry", ran(phInit, pending, timeout(-time.Minute)), false},
		"annotation run [H-3]":                         {"from lastReconcileTime", ran(phProgressing, reconciled(-10)), true},
		"abort has its own deadline":                   {"Abort still has to be called", ran(phProgressing, reconciled(-99), op("abort")), false},
		"a new run begins":                             {"old times do not count", ran(phProgressing, reconciled(-99), generation(4)), false},
		"finished":                                     {"nothing runs", ran(phSucceeded, reconciled(-99)), false},
		"pending background run at its deadline [H-3]": {"from the condition", ran(phSucceeded, job("a", "a", -99), owed(-10)), true},
		"pending background run before its deadline":   {"from the condition, not lastReconcileTime", ran(phSucceeded, job("a", "a", -99), owed(-9), reconciled(-99)), false},
		"first attempt of a forced background run":     {"nothing says when it began", ran(phSucceeded, job("a", "a", -99), op("force-reconcile"), reconciled(-99)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.Evaluate(tc.di, options()); got.Expired != tc.want {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			if contract.Evaluate(tc.di, contract.Options{}).Expired {
				t.Error("expired without a time")
			}
		})
	}
}

func TestForce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason              string
		di                  *lsv1alpha1.DeployItem
		due, isNew, backgnd bool
	}{
		"finished item under the annotation revision": {"prepared like any other run", ran(phSucceeded), true, true, false},
		"finished job": {"in the background, without a start", ran(phSucceeded, job("a", "a", -6)), true, false, true},
		"item without a run under the job-ID revision": {"refused", item(note(lsv1alpha1.DeployerTypeAnnotation, "x")), false, false, false},
		"terminating":                            {"the job that deletes is still to come", ran(phSucceeded, job("a", "a", -6), deleted(-1), finalizer), false, false, true},
		"failed Delete":                          {"rests", ran(phFailed, deleted(-6), finalizer), false, false, false},
		"ignored":                                {"ignored means ignored", ran(phSucceeded, note(lsv1alpha1.IgnoreAnnotation, "true")), false, false, false},
		"unchanged item with updateOnChangeOnly": {"updateOnChangeOnly gives way", ran(phSucceeded, job("b", "a", 0), updateOnChange), true, true, false},
		"run in progress":                        {"stays what it is", ran(phProgressing), true, false, false},
		"item with a new generation that waits for its job": {"its job is still to come", ran(phSucceeded, job("a", "a", -6), generation(4)), false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := contract.Evaluate(tc.di, options()).Force()
			if got.Due != tc.due || got.New != tc.isNew || got.Unchanged || (tc.due && got.Background != tc.backgnd) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}

func TestHasOurFinalizer(t *testing.T) {
	t.Parallel()
	if contract.HasOurFinalizer(nil) || contract.HasOurFinalizer(item()) || !contract.HasOurFinalizer(item(finalizer)) {
		t.Error("HasOurFinalizer is wrong")
	}
}
