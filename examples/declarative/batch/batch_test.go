// SPDX-License-Identifier: Apache-2.0

package batch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/declarative/declarativetest"
	"github.com/deployerkit/deployerkit/examples/declarative/batch"
)

// newJob returns the Job of the item "nightly", which ended with the condition end, or is still running if end is "".
func newJob(image string, end batchv1.JobConditionType) *batchv1.Job {
	j := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "nightly-batch"}}
	j.Spec.BackoffLimit = new(int32(0))
	j.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: "Never", Containers: []corev1.Container{{Name: "batch", Image: image}}}
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: "False"}}
	if end != "" {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: end, Status: "True"})
	}
	return j
}

func TestSync(t *testing.T) {
	for name, tc := range map[string]struct {
		observed []any
		want     []string
		state    string
		wait     string
	}{
		"a new item":                    {nil, []string{"create Job.batch demo/nightly-batch"}, "Missing", "the Job is Missing"},
		"a running Job":                 {[]any{newJob("a:1", "")}, nil, "Running", "the Job is Running"},
		"a complete Job":                {[]any{newJob("a:1", batchv1.JobComplete)}, nil, "Complete", ""},
		"another image [R15]":           {[]any{newJob("a:0", batchv1.JobComplete)}, []string{"recreate Job.batch demo/nightly-batch .spec.template.spec.containers[0].image"}, "Outdated", "the Job is Outdated"},
		"another image after a failure": {[]any{newJob("a:0", batchv1.JobFailed)}, []string{"recreate Job.batch demo/nightly-batch .spec.template.spec.containers[0].image"}, "Outdated", "the Job is Outdated"},
	} {
		t.Run(name, func(t *testing.T) {
			item := declarativetest.NewItem(t, "demo", "nightly", batch.Config{Image: "a:1"})
			plan, err := declarativetest.Run(t.Context(), batch.Handler{}, batch.Options, item, tc.observed...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, plan.ListSteps()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var status batch.Status
			if err := json.Unmarshal(plan.Status, &status); err != nil || status.Job != tc.state || plan.Wait != tc.wait {
				t.Errorf("got %s, waits for %q, %v", plan.Status, plan.Wait, err)
			}
			declarativetest.CheckPure(t, batch.Handler{}, batch.Options, item, tc.observed...)
		})
	}
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		image    string
		observed []any
	}{
		"spec.config.image: required":                {"", nil},
		`spec.config.image: the Job of "a:1" failed`: {"a:1", []any{newJob("a:1", batchv1.JobFailed)}},
	} {
		t.Run(name, func(t *testing.T) {
			item := declarativetest.NewItem(t, "demo", "nightly", batch.Config{Image: tc.image})
			if _, err := declarativetest.Run(t.Context(), batch.Handler{}, batch.Options, item, tc.observed...); err == nil || !strings.HasSuffix(err.Error(), name) {
				t.Errorf("error = %v, want an error that ends with %q", err, name)
			}
		})
	}
}

func TestFinalize(t *testing.T) {
	for name, tc := range map[string]struct {
		observed []runtime.Object
		waits    bool
		state    string
	}{
		"the deletion waits while the Job runs [Rx9]":         {[]runtime.Object{newJob("a:1", "")}, true, "Running"},
		"the deletion is done when the Job is complete [Rx9]": {[]runtime.Object{newJob("a:1", batchv1.JobComplete)}, false, "Complete"},
		"the deletion is done when the Job failed [Rx9]":      {[]runtime.Object{newJob("a:1", batchv1.JobFailed)}, false, "Failed"},
		"the deletion is done without a Job [Rx9]":            {nil, false, "Missing"},
	} {
		t.Run(name, func(t *testing.T) {
			var children []*unstructured.Unstructured
			for _, child := range tc.observed {
				body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
				if err != nil {
					t.Fatal(err)
				}
				children = append(children, &unstructured.Unstructured{Object: body})
			}
			req, err := declarative.NewRequest(declarativetest.NewItem(t, "demo", "nightly", batch.Config{}), nil, children...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := batch.Handler{}.Finalize(t.Context(), req)
			if err != nil || got.Retry > 0 != tc.waits || got.Status != (batch.Status{Job: tc.state}) {
				t.Errorf("Finalize(...) = %+v, %v, want job %q, waits: %t", got, err, tc.state, tc.waits)
			}
		})
	}
}
