// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain/registration"
	"github.com/deployerkit/deployerkit/explain"
	"github.com/deployerkit/deployerkit/history"
)

// cluster returns a client of a fake API server with the given objects. If `forbidden` returns true for a kind, reading
// objects of this kind fails.
func cluster(t *testing.T, forbidden func(kind string) bool, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := deployerlib.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(obj any) error {
		kind := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(typeName(obj), "*v1alpha1."), "*v1."), "List")
		if forbidden != nil && forbidden(kind) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind)}, "", errors.New("no"))
		}
		return nil
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} }).
		WithIndex(&corev1.Event{}, "involvedObject.kind", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Kind} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
				if err := refuse(obj); err != nil {
					return err
				}
				return c.Get(ctx, key, obj, o...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if err := refuse(list); err != nil {
					return err
				}
				options := (&client.ListOptions{}).ApplyOptions(o)
				options.Limit = 0 // the fake client does not support pages
				return c.List(ctx, list, options)
			},
		}).Build()
}

func typeName(obj any) string {
	if u, ok := obj.(*unstructured.UnstructuredList); ok {
		return u.GetKind()
	}
	return fmt.Sprintf("%T", obj)
}

// web returns the item "web" with its Target, its Context, a lease and events.
func web() []client.Object {
	f := facts(job(0))
	return []client.Object{
		f.Item, f.Target,
		&lsv1alpha1.Context{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default"}},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ls-system", Name: manifestName, Labels: map[string]string{registration.Label: "true"},
				Annotations: map[string]string{registration.Annotation: explain.Registered{Name: manifestName, Type: manifestType}.Encode()},
			},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: new("pod_1"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now}},
		},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ls-system", Name: "broken", Labels: map[string]string{registration.Label: "true"},
			Annotations: map[string]string{registration.Annotation: "{"},
		}},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, InvolvedObject: corev1.ObjectReference{Kind: "DeployItem", Name: "web", UID: "1"},
			Reason: "Drift", Message: "Pod a: changed", LastTimestamp: metav1.NewTime(now),
		},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}, InvolvedObject: corev1.ObjectReference{Kind: "DeployItem", Name: "web", UID: "older"}, Reason: "Drift",
		},
	}
}

var webKey = types.NamespacedName{Namespace: "shop", Name: "web"}

func gather(t *testing.T, c client.Reader, o explain.Options) explain.Facts {
	t.Helper()
	o.Clock = clocktesting.NewFakePassiveClock(now)
	f, err := explain.Gather(t.Context(), c, webKey, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGather(t *testing.T) {
	t.Run("reads all that is known [E1]", func(t *testing.T) {
		reconciles := []history.Reconcile{{Result: "done"}}
		f := gather(t, cluster(t, nil, web()...), explain.Options{
			History: func(context.Context, types.NamespacedName) ([]history.Reconcile, error) {
				return reconciles, nil
			},
		})
		if f.Target == nil || f.TargetMissing || f.ContextMissing || len(f.Unknown) > 0 || len(f.Deployers) != 1 || len(f.Events) != 1 || len(f.History) != 1 {
			t.Errorf("got %+v", f)
		}
		if got := explain.Explain(f).Responsible.Summary; got != manifestName+" is responsible, and its replica pod_1 is active." {
			t.Errorf("got %q", got)
		}
	})
	t.Run("says what is missing [E1]", func(t *testing.T) {
		f := gather(t, cluster(t, nil, web()[0]), explain.Options{})
		if !f.TargetMissing || !f.ContextMissing || len(f.Unknown) > 0 {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("makes unknown what it may not read [E1]", func(t *testing.T) {
		c := cluster(t, func(kind string) bool { return kind != "DeployItem" }, web()...)
		f := gather(t, c, explain.Options{
			History: func(context.Context, types.NamespacedName) ([]history.Reconcile, error) {
				return nil, errors.New("boom")
			},
		})
		var parts []string
		for _, u := range f.Unknown {
			parts = append(parts, u.Part)
		}
		slices.Sort(parts)
		if diff := cmp.Diff([]string{"context", "deployer registrations", "events", "history", "leases", "target"}, parts); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		e := explain.Explain(f)
		if e.Responsible.Summary != "It is not known which deployers exist." || e.Responsible.Target.State != "unknown" {
			t.Errorf("got %+v", e.Responsible)
		}
	})
	t.Run("fails if there is no item [E1]", func(t *testing.T) {
		_, err := explain.Gather(t.Context(), cluster(t, nil), webKey, explain.Options{})
		if !explain.IsMissing(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("keeps no configuration of a Target [E2]", func(t *testing.T) {
		objects := web()
		objects[1].(*lsv1alpha1.Target).Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"kubeconfig": "s3cret"}`))
		if f := gather(t, cluster(t, nil, objects...), explain.Options{}); f.Target.Spec.Configuration != nil {
			t.Error("the configuration is there")
		}
	})
}
