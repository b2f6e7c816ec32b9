// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
	"github.com/deployerkit/deployerkit/history"
	"github.com/deployerkit/deployerkit/internal/explain"
)

// newCluster returns a client of a fake API server with the given objects. If `forbidden` returns true for a kind,
// reading objects of this kind fails.
func newCluster(t *testing.T, forbidden func(kind string) bool, objects ...client.Object) client.Client {
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
				limit, from := int(options.Limit), options.Continue
				options.Limit, options.Continue = 0, "" // the fake client does not support pages
				if err := c.List(ctx, list, options); err != nil {
					return err
				}
				return limitPage(list, limit, from)
			},
		}).Build()
}

// limitPage leaves one page of leases or unstructured objects in the list.
func limitPage(list client.ObjectList, limit int, from string) error {
	if limit == 0 {
		return nil
	}
	switch list := list.(type) {
	case *coordinationv1.LeaseList:
		return limitItems(list, &list.Items, limit, from)
	case *unstructured.UnstructuredList:
		return limitItems(list, &list.Items, limit, from)
	}
	return nil
}

// limitItems leaves one page of items in the list.
func limitItems[T any](list client.ObjectList, items *[]T, limit int, from string) error {
	first := 0
	if from != "" {
		var err error
		if first, err = strconv.Atoi(from); err != nil {
			return err
		}
	}
	end := min(first+limit, len(*items))
	if end < len(*items) {
		list.SetContinue(strconv.Itoa(end))
	}
	*items = (*items)[first:end]
	return nil
}

func typeName(obj any) string {
	if u, ok := obj.(*unstructured.UnstructuredList); ok {
		return u.GetKind()
	}
	return fmt.Sprintf("%T", obj)
}

// newWebObjects returns the item "web" with its Target, its Context, a lease and events.
func newWebObjects() []client.Object {
	f := newFacts(withJob(0))
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

func readFacts(t *testing.T, c client.Reader, o explain.Options) explain.Facts {
	t.Helper()
	o.Clock = clocktesting.NewFakePassiveClock(now)
	f, err := explain.ReadFacts(t.Context(), c, webKey, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGather(t *testing.T) {
	t.Run("Gather reads all facts [V1]", func(t *testing.T) {
		reconciles := []history.Reconcile{{Result: "done"}}
		f := readFacts(t, newCluster(t, nil, newWebObjects()...), explain.Options{
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
	t.Run("Gather reports missing objects [V1]", func(t *testing.T) {
		f := readFacts(t, newCluster(t, nil, newWebObjects()[0]), explain.Options{})
		if !f.TargetMissing || !f.ContextMissing || len(f.Unknown) > 0 {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("Gather marks facts as unknown that it may not read [V1]", func(t *testing.T) {
		c := newCluster(t, func(kind string) bool { return kind != "DeployItem" }, newWebObjects()...)
		f := readFacts(t, c, explain.Options{
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
	t.Run("Gather fails without an item [V1]", func(t *testing.T) {
		_, err := explain.ReadFacts(t.Context(), newCluster(t, nil), webKey, explain.Options{})
		if !explain.IsMissing(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("Gather does not keep the configuration of a Target [V2]", func(t *testing.T) {
		objects := newWebObjects()
		objects[1].(*lsv1alpha1.Target).Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"kubeconfig": "s3cret"}`))
		if f := readFacts(t, newCluster(t, nil, objects...), explain.Options{}); f.Target.Spec.Configuration != nil {
			t.Error("the configuration is there")
		}
	})
}

// newForgedLeases returns n leases with registrations in a namespace. They were created after the lease of the
// deployer.
func newForgedLeases(n int, namespace, itemType string) []client.Object {
	var out []client.Object
	for i := range n {
		out = append(out, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("a-%04d", i), Labels: map[string]string{registration.Label: "true"}, CreationTimestamp: metav1.NewTime(now),
			Annotations: map[string]string{registration.Annotation: explain.Registered{
				Name: fmt.Sprintf("a-%04d", i), Type: itemType, Namespace: "nowhere",
			}.Encode()},
		}})
	}
	return out
}

// newDeployerRegistration returns a DeployerRegistration for a type.
func newDeployerRegistration(name, itemType string, created metav1.Time) client.Object {
	r := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"types": []any{itemType}}}}
	r.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployerRegistration"))
	r.SetName(name)
	r.SetCreationTimestamp(created)
	return r
}

func TestForgedRegistrations(t *testing.T) {
	for name, namespaces := range map[string][]string{
		"in the namespace of the item":     {"shop"},
		"in another namespace":             {"a-tenant"},
		"in the namespace of the deployer": {"ls-system"},
	} {
		t.Run("forged registrations do not displace a deployer: 400 "+name+" [F111]", func(t *testing.T) {
			objects := newWebObjects()
			objects[3].SetCreationTimestamp(newTimeBefore(24 * time.Hour))
			for _, namespace := range namespaces {
				objects = append(objects, newForgedLeases(400, namespace, manifestType)...)
			}
			e := explain.Explain(readFacts(t, newCluster(t, nil, objects...), explain.Options{}))
			r := e.Responsible
			if want := manifestName + " is responsible, and its replica pod_1 is active."; r.Summary != want {
				t.Errorf("got %q, want %q", r.Summary, want)
			}
			if len(r.Registrations) != 50 || r.Omitted != 351 || r.Registrations[0].Name != manifestName {
				t.Errorf("%d registrations, %d omitted, the first is %s", len(r.Registrations), r.Omitted, r.Registrations[0].Name)
			}
			if text := e.Format(explain.Style{}); !strings.Contains(text, "- 351 more are not shown") {
				t.Errorf("the text does not say how many are not shown:\n%s", text)
			}
		})
	}
	for name, test := range map[string]struct {
		namespace string
		created   metav1.Time // of the lease of the deployer; the forged ones are made now
	}{
		"older ones in another namespace":             {"a-tenant", metav1.NewTime(now.Add(time.Hour))},
		"newer ones in the namespace of the deployer": {"ls-system", newTimeBefore(time.Hour)},
	} {
		t.Run("registrations are ranked before their number is limited, and the others are counted: "+name+" [F111]", func(t *testing.T) {
			objects := newWebObjects()
			objects[3].SetCreationTimestamp(test.created)
			f := readFacts(t, newCluster(t, nil, append(objects, newForgedLeases(1500, test.namespace, manifestType)...)...), explain.Options{})
			if r := explain.Explain(f).Responsible; len(f.Deployers) != 1000 || r.Omitted != 1451 || r.Registrations[0].Name != manifestName {
				t.Errorf("%d known, %d omitted, the first is %s", len(f.Deployers), r.Omitted, r.Registrations[0].Name)
			}
		})
	}
	t.Run("registrations that all claim the item do not hide the deployer [F111]", func(t *testing.T) {
		f := newFacts(withJob(0))
		f.Deployers[0].LeaseNamespace, f.Deployers[0].Created = "ls-system", now.Add(-24*time.Hour)
		for i := range 60 {
			d := newDeployer(0)
			d.Name, d.Source, d.LeaseNamespace, d.Created = fmt.Sprintf("a-%d", i), fmt.Sprintf("Lease a/%d", i), "a", now
			f.Deployers = append([]explain.KnownDeployer{d}, f.Deployers...)
		}
		r := explain.Explain(f).Responsible
		if !slices.ContainsFunc(r.Registrations[:2], func(r explain.Registration) bool { return r.Name == manifestName }) {
			t.Errorf("the first are %+v", r.Registrations[:2])
		}
		if r.Summary != "61 deployers are responsible for the item. They may disturb each other." {
			t.Errorf("got %q", r.Summary)
		}
	})
	t.Run("DeployerRegistrations are read in pages and ranked before their number is limited [F111]", func(t *testing.T) {
		objects := newWebObjects()[:3]
		for i := range 1300 {
			kind := manifestType
			if i < 250 {
				kind = "example.org/other"
			}
			objects = append(objects, newDeployerRegistration(fmt.Sprintf("a-%04d", i), kind, metav1.NewTime(now)))
		}
		objects = append(objects, newDeployerRegistration("z-oldest", manifestType, newTimeBefore(24*time.Hour)))
		f := readFacts(t, newCluster(t, nil, objects...), explain.Options{})
		if r := explain.Explain(f).Responsible; len(f.Deployers) != 1000 || r.Omitted != 1001 || r.Registrations[0].Name != "z-oldest" {
			t.Errorf("%d known, %d omitted, the first is %s", len(f.Deployers), r.Omitted, r.Registrations[0].Name)
		}
	})
	t.Run("no deployer is reported as missing or not responsible if not all registrations were read [F111]", func(t *testing.T) {
		for _, part := range []string{"leases", "deployer registrations"} {
			f := newFacts(withJob(0))
			for i := range f.Deployers {
				f.Deployers[i].Type = "example.org/other"
			}
			f.Types = []string{"example.org/other"}
			f.Unknown = []explain.Unknown{{Part: part, Why: "there are too many"}}
			if got := explain.Explain(f).Responsible.Summary; got != "It is not known which deployers exist." {
				t.Errorf("%s: got %q", part, got)
			}
		}
	})
	t.Run("registrations of other types name the known types [F87]", func(t *testing.T) {
		f := readFacts(t, newCluster(t, nil, append(newWebObjects()[:3], newForgedLeases(40, "b", "example.org/other")...)...), explain.Options{})
		if got, want := explain.Explain(f).Responsible.Summary, "No known deployer processes items of type "+manifestType+". Known types: example.org/other."; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestTextsForSeveralDeployers(t *testing.T) {
	for name, tc := range map[string]struct {
		deployers []explain.KnownDeployer
		want      string
	}{
		"no deployers":  {nil, "Check the type of the item for mistakes."},
		"one deployer":  {[]explain.KnownDeployer{newSelectingDeployer()}, "with the deployer above,"},
		"two deployers": {[]explain.KnownDeployer{newSelectingDeployer(), newSelectingDeployer()}, "with the deployers above,"},
	} {
		t.Run(name+" [F87]", func(t *testing.T) {
			e := explain.Explain(newFacts(withJob(5*time.Minute), withDeployers(tc.deployers...)))
			if len(e.Advice) != 1 || !strings.Contains(e.Advice[0].Text, tc.want) {
				t.Errorf("got %+v, want %q", e.Advice, tc.want)
			}
		})
	}
	t.Run("a future reconcile is not shown as past [F87]", func(t *testing.T) {
		text := explain.Explain(cases["finished"].facts).Format(explain.Style{})
		if !strings.Contains(text, "\nNext reconcile 2026-03-02 13:00:00 (in 1h0m)\n") {
			t.Errorf("got\n%s", text)
		}
	})
}
