// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// newStatefulSet returns a StatefulSet. The configuration of the item determines the number of replicas.
func newStatefulSet(ctx context.Context) (*appsv1.StatefulSet, error) {
	config, err := Config[struct{ Replicas int32 }](ctx)
	if err != nil {
		return nil, err
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"},
		Spec:       appsv1.StatefulSetSpec{Replicas: &config.Replicas},
	}, nil
}

func TestObject(t *testing.T) {
	t.Run("the body is the object in the JSON of Kubernetes, with labels [Y16, Y17, Y20]", func(t *testing.T) {
		c := newFakeSession()
		w := visitItem(t, mustBuild(t, NewBuilder().Add("db", Object(newStatefulSet))), newItemWithConfig("a", `{"Replicas":3}`), c)
		if !w.isReady() {
			t.Fatal(w.err())
		}
		obj := c.objects[apply.Ref{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "default", Name: "db"}]
		ours, _ := Identity(newItem("a"), "db", "")
		if diff := cmp.Diff(ours, obj.GetLabels()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); replicas != 3 {
			t.Errorf("%d replicas", replicas)
		}
		if _, found := obj.Object["status"]; found || strings.Contains(fmt.Sprint(obj.Object), "nil") {
			t.Errorf("more than was set: %v", obj.Object)
		}
	})
	t.Run("a changed intent is applied [Y6]", func(t *testing.T) {
		g, c := mustBuild(t, NewBuilder().Add("db", Object(newStatefulSet))), newFakeSession()
		for _, replicas := range []int64{1, 5} {
			visitItem(t, g, newItemWithConfig("a", fmt.Sprintf(`{"Replicas":%d}`, replicas)), c)
			for _, obj := range c.objects {
				if got, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); got != replicas {
					t.Errorf("%d replicas, want %d", got, replicas)
				}
			}
		}
	})
	t.Run("an applied object that is not ready blocks its dependents without a waiting call [Y5, Y7, Y8, Y9]", func(t *testing.T) {
		c := newFakeSession()
		c.unready["db"] = "1 of 3 ready"
		g := mustBuild(t, NewBuilder().Add("db", Object(newStatefulSet)).Add("web", Object(newUnnamedConfigMap), "db"))
		item := newItemWithConfig("a", `{"Replicas":3}`)
		want := []string{"db Progressing StatefulSet.apps default/db: 1 of 3 ready", "web Blocked by [db]"}
		if diff := cmp.Diff(want, formatStates(visitItem(t, g, item, c))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if c.applied["db"] != 1 || c.applied["web"] != 0 {
			t.Errorf("applied %v", c.applied)
		}
		c.unready = nil
		if w := visitItem(t, g, item, c); !w.isReady() || c.applied["web"] != 1 {
			t.Errorf("states = %v after %d calls, want a ready object after one call", formatStates(w), c.applied["web"])
		}
	})
	t.Run("two objects of the same kind belong to their components [Y14]", func(t *testing.T) {
		c := newFakeSession()
		visitItem(t, mustBuild(t, NewBuilder().Add("one", Object(newUnnamedConfigMap)).Add("two", Object(newUnnamedConfigMap))), newItem("a"), c)
		if names := c.listNames(); len(names) != 2 || !strings.HasPrefix(names[0], "ConfigMap one-") || !strings.HasPrefix(names[1], "ConfigMap two-") {
			t.Errorf("objects = %v, want ConfigMaps one-… and two-…", names)
		}
	})
	t.Run("two components cannot keep the same object", func(t *testing.T) {
		same := Object(func(context.Context) (*corev1.ConfigMap, error) { return newConfigMap("same", nil), nil })
		c := newFakeSession()
		w := visitItemInOrder(t, mustBuild(t, NewBuilder().Add("one", same).Add("two", same)), newItem("a"), c)
		want := []string{"one Ready", "two Failed ConfigMap default/same already belongs to the component one"}
		if diff := cmp.Diff(want, formatStates(w)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("all known names are stored together before the first write [F40]", func(t *testing.T) {
		c := newFakeSession()
		undo := func(context.Context) error { return nil }
		g := mustBuild(t, NewBuilder().Add("a", Object(newUnnamedConfigMap)).Add("b", Object(newUnnamedConfigMap)).Add("c", Object(newUnnamedConfigMap), "a").
			Add("d", External(ExternalSpec{Reconcile: undo, Delete: undo})).Add("e", External(ExternalSpec{Reconcile: undo})))
		if w := visitItem(t, g, newItem("a"), c); !w.isReady() || len(c.claims) != 1 {
			t.Fatal(w.err(), c.claims)
		}
		slices.Sort(c.claims[0])
		if diff := cmp.Diff([]string{"a", "b", "c", "d"}, c.claims[0]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("nothing is written when the inventory cannot be stored", func(t *testing.T) {
		c := newFakeSession()
		c.broken = errors.New("conflict")
		w := visitItem(t, mustBuild(t, NewBuilder().Add("a", Object(newUnnamedConfigMap))), newItem("a"), c)
		if diff := cmp.Diff([]string{"a Failed store the inventory: conflict"}, formatStates(w)); diff != "" || len(c.objects) > 0 {
			t.Error(diff, c.listNames())
		}
	})
}

func TestObjectBodies(t *testing.T) {
	free := func(body map[string]any) func(context.Context) (*unstructured.Unstructured, error) {
		return func(context.Context) (*unstructured.Unstructured, error) {
			return &unstructured.Unstructured{Object: body}, nil
		}
	}
	meta := map[string]any{"name": "x", "labels": map[string]any{LabelComponent: "other"}}
	tests := map[string]struct {
		resource Resource
		want     string
		objects  int
	}{
		"an unstructured object [Y17]": {Object(free(map[string]any{"apiVersion": "a.b/v1", "kind": "Thing"})), "a Ready", 1},
		"a list is replaced by its items": {
			Object(free(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
				map[string]any{"apiVersion": "v1", "kind": "A"}, map[string]any{"apiVersion": "v1", "kind": "B"},
			}})), "a Ready", 2,
		},
		"a list with items without a kind and with a nested list [F102]": {
			Object(free(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
				map[string]any{"apiVersion": "v1", "kind": "AList", "items": []any{map[string]any{"metadata": map[string]any{"name": "a"}}, map[string]any{"metadata": map[string]any{"name": "b"}}}},
				map[string]any{"apiVersion": "v1", "kind": "B"},
			}})), "a Ready", 3,
		},
		"a list item that is not an object [F102]": {
			Object(free(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{"x"}})), "a Failed items[0] must be an object", 0,
		},
		"a nil object":         {Object(func(context.Context) (*corev1.ConfigMap, error) { return nil, nil }), "a Ready", 0},
		"an error of the body": {Object(func(context.Context) (*corev1.ConfigMap, error) { return nil, errors.New("no") }), "a Failed no", 0},
		"a panic of the body":  {Object(func(context.Context) (*corev1.ConfigMap, error) { panic("oh") }), "a Failed panic: oh", 0},
		"a type without a kind": {
			Object(func(context.Context) (*fakeObject, error) { return &fakeObject{}, nil }),
			"a Failed a *stategraph.fakeObject needs apiVersion and kind: the scheme does not know the type", 0,
		},
		"an object without a kind": {Object(free(map[string]any{"apiVersion": "v1"})), `a Failed the object "" lacks apiVersion or kind`, 0},
		"an object with a label of the library": {
			Object(free(map[string]any{"apiVersion": "v1", "kind": "A", "metadata": meta})),
			"a Failed A x has the label state.deployerkit.dev/component=other, which the library sets", 0,
		},
		"an object of a kind that was not declared": {
			Object(free(map[string]any{"apiVersion": "v1", "kind": "A"}), WithKinds(corev1.SchemeGroupVersion.WithKind("B"))),
			"a Failed A is of a kind that WithKinds does not list", 0,
		},
		"a nil option": {Object(newUnnamedConfigMap, nil), "", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, err := NewBuilder().Add("a", test.resource).Build()
			if test.want == "" {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c := newFakeSession()
			if diff := cmp.Diff([]string{test.want}, formatStates(visitItem(t, g, newItem("i"), c))); diff != "" || len(c.objects) != test.objects {
				t.Error(diff, c.listNames())
			}
		})
	}
}

func TestObjectReadiness(t *testing.T) {
	full := func(live *corev1.ConfigMap) (Readiness, error) {
		if live.Data["bad"] != "" {
			return Readiness{}, errors.New("bad")
		}
		return ReadyIf(live.Data["full"] == "yes", "is not full"), nil
	}
	with := func(data map[string]string, opts ...Option) Resource {
		return Object(func(context.Context) (*corev1.ConfigMap, error) { return newConfigMap("x", data), nil }, opts...)
	}
	for name, test := range map[string]struct {
		resource Resource
		want     string
	}{
		"readiness by the rules for the kind":           {with(nil), "a Progressing ConfigMap default/x: odd"},
		"readiness with ReadyOnceApplied":               {with(nil, ReadyOnceApplied()), "a Ready"},
		"readiness by a function that returns true":     {with(map[string]string{"full": "yes"}, ReadyWhen(full)), "a Ready"},
		"readiness by a function that returns false":    {with(nil, ReadyWhen(full)), "a Progressing ConfigMap default/x: is not full"},
		"readiness by a function that returns an error": {with(map[string]string{"bad": "x"}, ReadyWhen(full)), "a Failed ConfigMap default/x: bad"},
	} {
		t.Run(name+" [Y8]", func(t *testing.T) {
			c := newFakeSession()
			c.unready["x"] = "odd"
			if diff := cmp.Diff([]string{test.want}, formatStates(visitItem(t, mustBuild(t, NewBuilder().Add("a", test.resource)), newItem("i"), c))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestObjectsThatWait(t *testing.T) {
	t.Run("an object that cannot be used yet is not ready [Y8]", func(t *testing.T) {
		c := newFakeSession()
		c.waiting = "is being deleted"
		w := visitItem(t, mustBuild(t, NewBuilder().Add("db", Object(newStatefulSet))), newItemWithConfig("a", `{"Replicas":1}`), c)
		if diff := cmp.Diff([]string{"db Progressing StatefulSet.apps default/db: is being deleted"}, formatStates(w)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestWaitingComponents(t *testing.T) {
	wait := func(context.Context) error { return deployerlib.WaitFor("a mail", 30*time.Second) }
	poll := []Listener{Poll(time.Minute), Timer(time.Hour)}
	unready := func(context.Context) (Readiness, error) { return Readiness{}, nil }
	well := func(context.Context) error { return nil }
	failing := func(context.Context) error { return errors.New("no") }
	for name, test := range map[string]struct {
		spec ExternalSpec
		want string
		next time.Duration
	}{
		"a wait is not a failure [Y7]":            {ExternalSpec{Reconcile: wait}, "a Progressing a mail", 30 * time.Second},
		"a poll of a component that is not ready": {ExternalSpec{Reconcile: well, Ready: unready, Listeners: poll}, "a Progressing not ready yet", time.Minute},
		"a poll of a failed component":            {ExternalSpec{Reconcile: failing, Ready: unready, Listeners: poll[:1]}, "a Failed no", time.Minute},
		"a timer of a ready component":            {ExternalSpec{Reconcile: well, Listeners: poll}, "a Ready", time.Hour},
		"a ready component without a timer":       {ExternalSpec{Reconcile: well}, "a Ready", 0},
		"a long reason is shortened to one line ": {ExternalSpec{Reconcile: func(context.Context) error { return errors.New("a\nb\t" + strings.Repeat("x", 999)) }}, "a Failed a; b " + strings.Repeat("x", 250) + "…", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, next := newRun(mustBuild(t, NewBuilder().Add("a", External(test.spec))), newItem("i"), newFakeSession(), nil, logr.Discard(), 1).visitAll(t.Context())
			if diff := cmp.Diff([]string{test.want}, formatStates(w)); diff != "" || next != test.next {
				t.Error(diff, next)
			}
		})
	}
}
