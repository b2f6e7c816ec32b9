// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newItemToDigest() *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "u", Generation: 3, ResourceVersion: "7", Finalizers: []string{"f"},
		Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"a": "1"},
		OwnerReferences: []metav1.OwnerReference{{UID: "o"}},
	}}
	di.Status.Phase, di.Status.JobID, di.Status.JobIDFinished = lsv1alpha1.DeployItemPhases.Init, "2", "1"
	return di
}

func TestComputeDigest(t *testing.T) {
	type change = func(*lsv1alpha1.DeployItem)
	wakes := map[string]change{
		"uid":              func(di *lsv1alpha1.DeployItem) { di.UID = "v" },
		"generation":       func(di *lsv1alpha1.DeployItem) { di.Generation++ },
		"phase":            func(di *lsv1alpha1.DeployItem) { di.Status.Phase = lsv1alpha1.DeployItemPhases.Failed },
		"jobID":            func(di *lsv1alpha1.DeployItem) { di.Status.JobID = "3" },
		"jobIDFinished":    func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished = "2" },
		"job IDs swapped":  func(di *lsv1alpha1.DeployItem) { di.Status.JobID, di.Status.JobIDFinished = "1", "2" },
		"deletion":         func(di *lsv1alpha1.DeployItem) { di.DeletionTimestamp = &metav1.Time{Time: moment} },
		"finalizer":        func(di *lsv1alpha1.DeployItem) { di.Finalizers = nil },
		"owner":            func(di *lsv1alpha1.DeployItem) { di.OwnerReferences[0].UID = "p" },
		"label value":      func(di *lsv1alpha1.DeployItem) { di.Labels["a"] = "2" },
		"labels exchanged": func(di *lsv1alpha1.DeployItem) { di.Labels["a"], di.Labels["b"] = "2", "1" },
		"label removed":    func(di *lsv1alpha1.DeployItem) { delete(di.Labels, "a") },
		"annotation":       func(di *lsv1alpha1.DeployItem) { di.Annotations["b"] = "" },
		"label becomes annotation": func(di *lsv1alpha1.DeployItem) {
			delete(di.Labels, "b")
			di.Annotations["b"] = "2"
		},
	}
	rests := map[string]change{
		"nothing":         func(*lsv1alpha1.DeployItem) {},
		"resourceVersion": func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "8" },
		"managedFields":   func(di *lsv1alpha1.DeployItem) { di.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} },
		"lastError":       func(di *lsv1alpha1.DeployItem) { di.Status.LastError = &lsv1alpha1.Error{Message: "boom"} },
		"conditions":      func(di *lsv1alpha1.DeployItem) { di.Status.Conditions = []lsv1alpha1.Condition{{Type: "x"}} },
		"provider status": func(di *lsv1alpha1.DeployItem) { di.Status.ExportReference = &lsv1alpha1.ObjectReference{Name: "x"} },
	}
	check := func(changes map[string]change, want bool) {
		for name, c := range changes {
			di := newItemToDigest()
			c(di)
			if changed := ComputeDigest(di) != ComputeDigest(newItemToDigest()); changed != want {
				t.Errorf("%s: wakes %t, want %t", name, changed, want)
			}
		}
	}
	check(wakes, true)
	check(rests, false)
	if ComputeDigest(&lsv1alpha1.DeployItem{}) == 0 {
		t.Error("the digest of an empty item is the zero value")
	}
}

func BenchmarkDigest(b *testing.B) {
	di := newItemToDigest()
	b.ReportAllocs()
	for b.Loop() {
		ComputeDigest(di)
	}
}
