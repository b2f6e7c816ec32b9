// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newGoodItem returns an item whose job is in progress and that violates no rule.
func newGoodItem() item {
	at := metav1.NewTime(time.Unix(1, 0))
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name, di.Generation, di.Finalizers = "ns", "a", 2, []string{lsv1alpha1.LandscaperFinalizer}
	di.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fieldManager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
	di.Status = lsv1alpha1.DeployItemStatus{
		Phase: phases.Progressing, ObservedGeneration: 2, LastReconcileTime: &at, Deployer: lsv1alpha1.DeployerInformation{Name: "d"},
		JobID: "2", JobIDFinished: "1",
		LastError: &lsv1alpha1.Error{Operation: "o", Reason: "r", Message: "m", LastTransitionTime: at, LastUpdateTime: at},
	}
	return di
}

func TestRules(t *testing.T) {
	for rule, tc := range map[string]struct {
		now  func(item)
		want string
	}{
		"finished-is-final":   {func(di item) { di.Status.JobIDFinished = "2" }, `the job has finished, but the phase is "Progressing"`},
		"one-write":           {func(di item) { di.Status.Phase = phases.Succeeded }, `phase "Succeeded" was written without jobIDFinished`},
		"job-ids":             {func(di item) { di.Status.JobID = "3" }, `jobID changed to "3" before the previous job had finished`},
		"failed-has-error":    {func(di item) { di.Status.Phase, di.Status.LastError = phases.Failed, nil }, `the phase is "Failed", but lastError is not set`},
		"error-shape":         {func(di item) { di.Status.LastError.Reason = "" }, "lastError is"},
		"observed-generation": {func(di item) { di.Status.ObservedGeneration = 3 }, "observedGeneration changed from 2 to 3, and the generation is 2"},
		"known-phases":        {func(di item) { di.Status.Phase = "Completing" }, `phase "Completing"`},
		"deprecated":          {func(di item) { di.Status.DeployerPhase = new("Init") }, "deployItemPhase is set"},
		"spec-untouched":      {func(di item) { di.ManagedFields[0].Manager = "another-client" }, `field manager "another-client" wrote the spec`},
		"finalizer":           {func(di item) { di.Finalizers = nil }, `the phase is "Progressing", but the item lacks the finalizer`},
		"says-who":            {func(di item) { di.Status.LastReconcileTime = nil }, `the phase is "Progressing", lastReconcileTime is <nil>`},
	} {
		t.Run(rule, func(t *testing.T) {
			bad := newGoodItem()
			tc.now(bad)
			found := false
			for _, c := range rules {
				if fault := findViolation(c, []item{newGoodItem(), newGoodItem()}); fault != "" {
					t.Errorf("rule %s on a good history: got %q", c.Name, fault)
				}
				if c.Name == rule {
					found = true
					if fault := findViolation(c, []item{newGoodItem(), bad}); !strings.Contains(fault, tc.want) {
						t.Errorf("rule %s: want %q, got %q", c.Name, tc.want, fault)
					}
				}
			}
			if !found {
				t.Errorf("there is no rule %q", rule)
			}
		})
	}
	for name, now := range map[string]func(item){
		"the finished ID is removed":             func(di item) { di.Status.JobIDFinished = "" },
		"the finished ID is that of another job": func(di item) { di.Status.JobIDFinished = "7" },
		"a phase of an older revision":           func(di item) { di.Status.JobID, di.Status.JobIDFinished, di.Status.Phase = "", "", phases.InitDelete },
		"observedGeneration decreases":           func(di item) { di.Status.ObservedGeneration = 1 },
		"the deployer is not named":              func(di item) { di.Status.Deployer.Name = "" },
		"a failed deletion without an error":     func(di item) { di.Status.Phase, di.Status.LastError = phases.DeleteFailed, nil },
	} {
		bad := newGoodItem()
		now(bad)
		broken := ""
		for _, c := range rules {
			broken += findViolation(c, []item{newGoodItem(), bad})
		}
		if broken == "" {
			t.Errorf("%s: want a violation of a rule, got none", name)
		}
	}
}

func TestVerdict(t *testing.T) {
	j := ruleResults{faults: map[string][]string{"one-write": {"a", "b", "c", "d", "e"}}, items: 7, versions: 30}
	failed, seen := j.getResult(Check{Name: "one-write"})
	if failed != "a\nb\nc\nand 2 more items" || seen != "30 versions of 7 items" {
		t.Errorf("verdict(...): got %q, %q", failed, seen)
	}
}
