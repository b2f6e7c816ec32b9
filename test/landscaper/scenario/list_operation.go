// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func operationScenarios() []Scenario {
	plain := app([]object{cm("app", "a", "1")})
	return []Scenario{
		{
			Name: "test-reconcile of an item runs it again",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", plain), finishes("it", succeeded), editedByHand,
				itemOperated("app", lsv1alpha1.TestReconcileOperation), has("app", "a", "1"),
				item("app", "is done", isDone), uninstalled("it"),
			},
		},
		{
			Name: "force-reconcile of an item runs it again", Waits: true,
			Steps: []Step{
				clusterTarget("cluster"), installed("it", plain), finishes("it", succeeded), editedByHand,
				itemOperated("app", lsv1alpha1.ForceReconcileOperation), has("app", "a", "1"),
				item("app", "is done", isDone), uninstalled("it"),
			},
		},
		{
			Name: "Landscaper reconciles automatically",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", plain, automatic(3*time.Second)), finishes("it", succeeded),
				editedByHand, has("app", "a", "1"), uninstalled("it"),
			},
		},
		{
			Name: "a continuous reconcile puts an edit right", Waits: true,
			Steps: []Step{
				clusterTarget("cluster"), installed("it", app([]object{cm("app", "a", "1")}, config("continuousReconcile", object{"every": "3s"}))), finishes("it", succeeded),
				editedByHand, has("app", "a", "1"), uninstalled("it"),
			},
		},
	}
}

// isDone reports whether an item has succeeded and has no operation annotation.
func isDone(di *lsv1alpha1.DeployItem) bool {
	return di.Status.JobID == di.Status.JobIDFinished && di.Status.Phase == lsv1alpha1.DeployItemPhases.Succeeded &&
		di.Annotations[lsv1alpha1.OperationAnnotation] == ""
}

// newContext creates a Context.
func newContext(name string) Step {
	return func(ctx context.Context, e *Env) error {
		return e.Create(ctx, &lsv1alpha1.Context{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}})
	}
}

// inContext sets the Context of an Installation.
func inContext(name string) change {
	return func(in *lsv1alpha1.Installation) { in.Spec.Context = name }
}

// errEmpty is the error of a check whose value does not exist yet.
var errEmpty = errors.New("the value is empty")
