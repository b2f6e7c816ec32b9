// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// newUnservedError returns the error of a request if a proxy responds with the status 404, or if the API server does
// not serve the kind of the object at the moment.
func newUnservedError(verb, resource, name string) error {
	return apierrors.NewGenericServerResponse(404, verb, lsv1alpha1.Resource(resource), name, "404 page not found", 0, true)
}

func TestUnservedReferences(t *testing.T) {
	for reference, at := range map[string]string{"Target": theTarget, "Secret of its Target": theSecret, "Context": theContext} {
		t.Run("a run waits for its "+reference+" if the API server does not serve it at the moment [F70]", func(t *testing.T) {
			w := newDelayedCacheEnv(t, nil, newItem(withJob("1"), withTarget), newTargetWithSecret(), newKubeconfigSecret("a"))
			w.faults = map[string]error{at: newUnservedError("get", "objects", "x")}
			w.runAttempt()
			w.expectCalls()
			last := w.getItem().Status.LastError
			if last != nil && (strings.Contains(last.Message, "not found in namespace") || strings.Contains(last.Message, "does not exist")) {
				t.Errorf("the error is %+v", last)
			}
			w.faults = nil
			w.clock.Step(time.Minute)
			w.runAttempt()
			w.expectCalls(contract.ActionReconcile)
		})
	}
}

func TestUnservedItem(t *testing.T) {
	t.Run("a write that does not find the kind of an item does not prove that the item is gone [F70]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.beforeRequest = func(request string, obj client.Object) error {
			if strings.HasPrefix(request, "patch") {
				return newUnservedError("patch", "deployitems", obj.GetName())
			}
			return nil
		}
		w.runAttempt()
		w.expectCalls() // the start of the run is not stored
		w.beforeRequest = nil
		w.clock.Step(time.Minute)
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("the result of a run is written again after a write that did not find the kind of the item [F70]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			w.beforeRequest = func(request string, obj client.Object) error {
				return newUnservedError(request, "deployitems", obj.GetName())
			}
			return nil
		})
		w.runAttempt()
		w.beforeRequest = nil
		w.clock.Step(time.Minute)
		w.runAttempt()
		if got := w.getItem().Status.Phase; got != phases.Succeeded {
			t.Errorf("the phase is %s", got)
		}
	})
}

func TestUnservedExport(t *testing.T) {
	for name, funcs := range map[string]interceptor.Funcs{
		"read": {Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return newUnservedError("get", "secrets", key.Name)
		}},
		"deletion": {Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
			return newUnservedError("delete", "secrets", obj.GetName())
		}},
	} {
		t.Run("an export Secret is not gone because a "+name+" does not find its kind [F70]", func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(newExport("item-export", "uid-1", "x")).WithInterceptorFuncs(funcs).Build()
			di := newItem()
			di.Status.ExportReference = &lsv1alpha1.ObjectReference{Name: "item-export", Namespace: ns}
			if err := deployerlib.DeleteExport(t.Context(), c, di); err == nil || di.Status.ExportReference == nil {
				t.Errorf("error %v, reference %v", err, di.Status.ExportReference)
			}
		})
	}
}
