// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"reflect"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

func TestChangedProtectedField(t *testing.T) {
	type item = lsv1alpha1.DeployItem
	tests := map[string]struct {
		change func(*item)
		want   string
	}{
		"nothing":                           {func(*item) {}, ""},
		"a label":                           {func(di *item) { di.Labels = map[string]string{"a": "b"} }, ""},
		"an annotation":                     {func(di *item) { di.Annotations["a"] = "b" }, ""},
		"the annotation of the schedule":    {func(di *item) { di.Annotations[lsv1alpha1.IgnoreAnnotation] = "true" }, ""},
		"a finalizer of another controller": {func(di *item) { di.Finalizers = append(di.Finalizers, "a/b") }, ""},
		"provider status":                   {func(di *item) { di.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte("{}")} }, ""},
		"export reference":                  {func(di *item) { di.Status.ExportReference = &lsv1alpha1.ObjectReference{Name: "x"} }, ""},
		"conditions":                        {func(di *item) { di.Status.Conditions = []lsv1alpha1.Condition{{Type: "Mine"}} }, ""},
		"spec":                              {func(di *item) { di.Spec.Context = "other" }, "spec"},
		"the finalizer of the library is removed": {func(di *item) { di.Finalizers = nil }, `metadata.finalizers["finalizer.landscaper.gardener.cloud"]`},
		"the operation is set again":              {func(di *item) { di.Annotations[lsv1alpha1.OperationAnnotation] = "abort" }, `metadata.annotations["landscaper.gardener.cloud/operation"]`},
		"the operation is removed":                {func(di *item) { delete(di.Annotations, lsv1alpha1.OperationAnnotation) }, `metadata.annotations["landscaper.gardener.cloud/operation"]`},
		"abort time":                              {func(di *item) { di.Annotations[contract.AbortTimestampAnnotation] = "" }, `metadata.annotations["landscaper.gardener.cloud/abort-time"]`},
		"reconcile time":                          {func(di *item) { di.Annotations[lsv1alpha1.ReconcileTimestampAnnotation] = "" }, `metadata.annotations["landscaper.gardener.cloud/reconcile-time"]`},
		"deployer type":                           {func(di *item) { di.Annotations[lsv1alpha1.DeployerTypeAnnotation] = "" }, `metadata.annotations["landscaper.gardener.cloud/deployer-type"]`},
		"the label of the Execution":              {func(di *item) { di.Labels = map[string]string{lsv1alpha1.ExecutionManagedByLabel: "x"} }, `metadata.labels["execution.landscaper.gardener.cloud/managed-by"]`},
		"phase":                                   {func(di *item) { di.Status.Phase = "Failed" }, "status.phase"},
		"observedGeneration":                      {func(di *item) { di.Status.ObservedGeneration = 9 }, "status.observedGeneration"},
		"lastReconcileTime":                       {func(di *item) { di.Status.LastReconcileTime = &metav1.Time{} }, "status.lastReconcileTime"},
		"deployer":                                {func(di *item) { di.Status.Deployer.Name = "me" }, "status.deployer"},
		"lastError":                               {func(di *item) { di.Status.LastError = &lsv1alpha1.Error{} }, "status.lastError"},
		"firstError":                              {func(di *item) { di.Status.FirstError = &lsv1alpha1.Error{} }, "status.firstError"},
		"lastErrors":                              {func(di *item) { di.Status.LastErrors = []*lsv1alpha1.Error{{}} }, "status.lastErrors"},
		"jobID":                                   {func(di *item) { di.Status.JobID = "2" }, "status.jobID"},
		"jobIDFinished":                           {func(di *item) { di.Status.JobIDFinished = "2" }, "status.jobIDFinished"},
		"jobIDGenerationTime":                     {func(di *item) { di.Status.JobIDGenerationTime = &metav1.Time{} }, "status.jobIDGenerationTime"},
		"transitionTimes":                         {func(di *item) { di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{} }, "status.transitionTimes"},
		"the deprecated deployer phase":           {func(di *item) { di.Status.DeployerPhase = new("x") }, "status.deployItemPhase"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := &item{}
			before.Annotations = map[string]string{lsv1alpha1.OperationAnnotation: "reconcile"}
			before.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
			after := before.DeepCopy()
			test.change(after)
			if got := ChangedProtectedField(before, after); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if ChangedProtectedField(nil, &item{}) != "" || ChangedProtectedField(&item{}, nil) != "" {
		t.Error("nil is another version")
	}
}

// TestChangedProtectedFieldCoversEachField checks that a new status field of the API is assigned either to user code or
// to the contract.
func TestChangedProtectedFieldCoversEachField(t *testing.T) {
	users := []string{"Conditions", "ProviderStatus", "ExportReference"}
	if got, want := reflect.TypeFor[lsv1alpha1.DeployItemStatus]().NumField()-len(users), 12; got != want {
		t.Errorf("the contract has %d status fields, ChangedProtectedField looks at %d", got, want)
	}
}
