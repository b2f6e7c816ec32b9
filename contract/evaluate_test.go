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
	ignore := withAnnotation(lsv1alpha1.IgnoreAnnotation, "true")
	runDecisions(t, newOptions(), map[string]decisionCase{
		"nil": {"no item", nil, contract.Decision{Reason: "NoItem"}},
		"ignored item that is finished [H-36]": {
			"ignore holds a finished item back", newStartedItem(phSucceeded, ignore, withGeneration(9), withOperation("reconcile")),
			contract.Decision{Reason: "Ignored"},
		},
		"ignored item that is finished, with a new job [H-36]": {
			"under both revisions", newStartedItem(phFailed, ignore, withJob("b", "a", 0)),
			contract.Decision{Reason: "Ignored"},
		},
		"ignored item with a run in progress": {
			"what runs ends", newStartedItem(phInit, ignore),
			contract.Decision{Action: contract.ActionReconcile, Due: true, Forceable: true, Reason: "InProgress"},
		},
		"item whose annotation ignore has another value": {
			"only true counts", newStartedItem(phSucceeded, withAnnotation(lsv1alpha1.IgnoreAnnotation, "True")),
			contract.Decision{Action: contract.ActionReconcile, Forceable: true, Reason: "Finished"},
		},
		"deleted item without the finalizer of the library": {
			"the finalizer of another controller prevents the removal", newStartedItem(phProgressing, withDeletionTime(-1), withOperation("force-reconcile")),
			contract.Decision{Reason: "NoFinalizer"},
		},
		"deleted item with a job and without the finalizer of the library": {
			"a deployer has nothing to do", newStartedItem(phSucceeded, withDeletionTime(-1), withJob("b", "a", 0)),
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
		"abort during a run [L31]":              {newStartedItem(phProgressing, withOperation("abort")), contract.ActionAbort},
		"abort precedes delete [L35]":           {newStartedItem(phProgressing, withOperation("abort"), withDeletionTime(-1), withFinalizer), contract.ActionAbort},
		"force-reconcile during a run [L32]":    {newStartedItem(phProgressing, withOperation("force-reconcile")), contract.ActionForceReconcile},
		"force-reconcile precedes delete [L35]": {newStartedItem(phProgressing, withOperation("force-reconcile"), withDeletionTime(-1), withFinalizer), contract.ActionForceReconcile},
		"delete precedes reconcile [L33] [L35]": {newStartedItem(phProgressing, withOperation("reconcile"), withDeletionTime(-1), withFinalizer), contract.ActionDelete},
		"reconcile is the default [L34]":        {newStartedItem(phProgressing), contract.ActionReconcile},
		"an unknown operation is ignored [L34]": {newStartedItem(phProgressing, withOperation("dance")), contract.ActionReconcile},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.Evaluate(tc.di, newAnnotationOptions()); got.Action != tc.want || !got.Due {
				t.Errorf("annotation: %+v, want %s", got, tc.want)
			}
			withJob("a", "", -6)(tc.di)
			if got := contract.Evaluate(tc.di, newJobOptions()); got.Action != tc.want || !got.Due {
				t.Errorf("job ID: %+v, want %s", got, tc.want)
			}
		})
	}
}

func TestEvaluateDeleteWithoutUninstall(t *testing.T) {
	t.Parallel()
	without := withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true")
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		want bool
	}{
		"job deletes without uninstall [C12]":                 {newStartedItem(phSucceeded, without, withDeletionTime(0), withFinalizer, withJob("b", "a", 0)), true},
		"annotation deletes without uninstall [C12]":          {newStartedItem(phSucceeded, without, withDeletionTime(0), withFinalizer), true},
		"deletion after its deadline without uninstall [C12]": {newStartedItem(phDeleting, without, withDeletionTime(-60), withFinalizer, withLastReconcileTime(-59)), true},
		"item that is not deleted [C12]":                      {newStartedItem(phProgressing, without), false},
		"annotation with another value [C12]":                 {newStartedItem(phSucceeded, withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "yes"), withDeletionTime(0), withFinalizer), false},
		"force-reconcile precedes the deletion [C12]":         {newStartedItem(phSucceeded, without, withDeletionTime(0), withFinalizer, withOperation("force-reconcile")), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := contract.Evaluate(tc.di, newOptions())
			if got.SkipUninstall != tc.want || !got.Due || got.Expired {
				t.Errorf("got %+v, want SkipUninstall %t", got, tc.want)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	pending := withJob("b", "a", -30)
	initTime := func(minutes int) itemOption {
		return func(di *lsv1alpha1.DeployItem) {
			di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{InitTime: ptrAfterMinutes(minutes)}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		di     *lsv1alpha1.DeployItem
		want   bool
	}{
		"job at its deadline [H-3]":                    {"10 m by default", newStartedItem(phInit, pending, withLastReconcileTime(-10)), true},
		"job before its deadline":                      {"one minute left", newStartedItem(phInit, pending, withLastReconcileTime(-9)), false},
		"init time precedes lastReconcileTime [H-3]":   {"lastReconcileTime may be ahead", newStartedItem(phInit, pending, withLastReconcileTime(-1), initTime(-10)), true},
		"timeout of the spec [H-3]":                    {"spec.timeout", newStartedItem(phInit, pending, withTimeout(5*time.Minute)), true},
		"timeout zero means none [H-2]":                {"none is no deadline, not an immediate one", newStartedItem(phInit, pending, withLastReconcileTime(-600), withTimeout(0)), false},
		"negative timeout":                             {"a config error, not an expiry", newStartedItem(phInit, pending, withTimeout(-time.Minute)), false},
		"annotation run [H-3]":                         {"from lastReconcileTime", newStartedItem(phProgressing, withLastReconcileTime(-10)), true},
		"abort has its own deadline":                   {"Abort still has to be called", newStartedItem(phProgressing, withLastReconcileTime(-99), withOperation("abort")), false},
		"a new run begins":                             {"old times do not count", newStartedItem(phProgressing, withLastReconcileTime(-99), withGeneration(4)), false},
		"finished":                                     {"nothing runs", newStartedItem(phSucceeded, withLastReconcileTime(-99)), false},
		"pending background run at its deadline [H-3]": {"from the condition", newStartedItem(phSucceeded, withJob("a", "a", -99), withPendingBackground(-10)), true},
		"pending background run before its deadline":   {"from the condition, not lastReconcileTime", newStartedItem(phSucceeded, withJob("a", "a", -99), withPendingBackground(-9), withLastReconcileTime(-99)), false},
		"first attempt of a forced background run":     {"nothing says when it began", newStartedItem(phSucceeded, withJob("a", "a", -99), withOperation("force-reconcile"), withLastReconcileTime(-99)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.Evaluate(tc.di, newOptions()); got.Expired != tc.want {
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
		"finished item under the annotation revision": {"prepared like any other run", newStartedItem(phSucceeded), true, true, false},
		"finished job": {"in the background, without a start", newStartedItem(phSucceeded, withJob("a", "a", -6)), true, false, true},
		"item without a run under the job-ID revision": {"refused", newItem(withAnnotation(lsv1alpha1.DeployerTypeAnnotation, "x")), false, false, false},
		"terminating":                            {"the job that deletes is still to come", newStartedItem(phSucceeded, withJob("a", "a", -6), withDeletionTime(-1), withFinalizer), false, false, true},
		"failed Delete":                          {"rests", newStartedItem(phFailed, withDeletionTime(-6), withFinalizer), false, false, false},
		"ignored":                                {"ignored means ignored", newStartedItem(phSucceeded, withAnnotation(lsv1alpha1.IgnoreAnnotation, "true")), false, false, false},
		"unchanged item with updateOnChangeOnly": {"updateOnChangeOnly gives way", newStartedItem(phSucceeded, withJob("b", "a", 0), withUpdateOnChangeOnly), true, true, false},
		"run in progress":                        {"stays what it is", newStartedItem(phProgressing), true, false, false},
		"item with a new generation that waits for its job": {"its job is still to come", newStartedItem(phSucceeded, withJob("a", "a", -6), withGeneration(4)), false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := contract.Evaluate(tc.di, newOptions()).Force()
			if got.Due != tc.due || got.New != tc.isNew || got.Unchanged || (tc.due && got.Background != tc.backgnd) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}

func TestHasOurFinalizer(t *testing.T) {
	t.Parallel()
	if contract.HasLandscaperFinalizer(nil) || contract.HasLandscaperFinalizer(newItem()) || !contract.HasLandscaperFinalizer(newItem(withFinalizer)) {
		t.Error("HasOurFinalizer is wrong")
	}
}
