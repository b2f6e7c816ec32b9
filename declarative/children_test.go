// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"encoding/json"
	"maps"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

func newObserved(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	body := object{"apiVersion": apiVersion, "kind": kind, "metadata": object{"name": name, "namespace": "shop", "labels": object{"app": name}}}
	maps.Copy(body, more)
	return &unstructured.Unstructured{Object: body}
}

func listNames(children Children) []string {
	out := []string{}
	for _, child := range children {
		out = append(out, child.Ref().String())
	}
	return out
}

func TestChildren(t *testing.T) {
	children := NewChildren(
		newObserved("v1", "Service", "b", nil),
		newObserved("apps/v1", "Deployment", "a", nil), newObserved("legacy/v1", "Deployment", "a", nil),
		newObserved("v1", "Service", "a", object{"status": object{"unknown": object{"x": "y"}}}),
	)
	for name, tc := range map[string]struct {
		got  Children
		want []string
	}{
		"all children in a fixed order [R6]":        {children, []string{"Deployment.apps shop/a", "Deployment.legacy shop/a", "Service shop/a", "Service shop/b"}},
		"children of a kind [R6]":                   {children.FilterByKind("Deployment"), []string{"Deployment.apps shop/a", "Deployment.legacy shop/a"}},
		"children of a kind and version [R6]":       {children.FilterByKind("apps/v1/Deployment"), []string{"Deployment.apps shop/a"}},
		"children of a kind of the core group [R6]": {children.FilterByKind("v1/Service"), []string{"Service shop/a", "Service shop/b"}},
		"children with a label [R6]":                {children.FilterByLabels(labels.Set{"app": "b"}.AsSelector()), []string{"Service shop/b"}},
		"children of a kind without objects":        {children.FilterByKind("Pod"), []string{}},
		"children that a function selects":          {children.Filter(func(c Child) bool { return c.GetString("status", "unknown", "x") == "y" }), []string{"Service shop/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, listNames(tc.got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if child, found := children.Find("Service", "b"); !found || child.Name() != "b" {
		t.Error("[R6] not found by name")
	}
	t.Run("Get finds a child by name and namespace [F32]", func(t *testing.T) {
		children := NewChildren(children[0].Object(), inNamespace(children[0], "other"))
		for name, want := range map[string]string{"a": "other", "shop/a": "shop", "other/a": "other", "third/a": ""} {
			child, found := children.Find("Deployment", name)
			if found != (want != "") || child.Ref().Namespace != want {
				t.Errorf("%s: found %t, %s", name, found, child.Ref())
			}
		}
		if _, found, err := Find[map[string]any](children, "Deployment", "third/a"); found || err != nil {
			t.Error(found, err)
		}
	})
	if child, found := children.Find("Service", "c"); found || child.Name() != "" || child.Raw() != nil || child.GetString("a") != "" {
		t.Error("found what is not there")
	}
}

// inNamespace returns a copy of a child whose namespace is replaced.
func inNamespace(child Child, namespace string) *unstructured.Unstructured {
	out := child.Object()
	out.SetNamespace(namespace)
	return out
}

func TestTypedChildren(t *testing.T) {
	children := NewChildren(
		newObserved("v1", "Pod", "a", object{"status": object{"phase": "Running", "future": int64(1)}, "spec": object{"priority": int64(7)}}),
		newObserved("v1", "Pod", "b", nil), newObserved("v1", "Secret", "s", object{"data": object{"k": "dg=="}}),
		newObserved("v1", "Broken", "x", object{"spec": "text"}),
	)
	pod, found, err := Find[corev1.Pod](children, "Pod", "a")
	if err != nil || !found || pod.Status.Phase != corev1.PodRunning || *pod.Spec.Priority != 7 {
		t.Errorf("[R37] got %+v, %v, %v", pod, found, err)
	}
	secret, found, err := Find[corev1.Secret](children, "Secret", "none")
	if err != nil || found || secret == nil || secret.Data["k"] != nil {
		t.Errorf("[R34, R37] got %+v, %v, %v", secret, found, err)
	}
	if secret, _, err = Find[corev1.Secret](children, "Secret", "s"); err != nil || string(secret.Data["k"]) != "v" {
		t.Errorf("[R37] got %+v, %v", secret, err)
	}
	own, _, err := Find[struct{ Status struct{ Phase string } }](children, "Pod", "a")
	if err != nil || own.Status.Phase != "Running" {
		t.Errorf("[R37] a struct of one's own: %+v, %v", own, err)
	}
	all, err := List[corev1.Pod](children, "Pod")
	if err != nil || len(all) != 2 || all[1].Name != "b" {
		t.Errorf("[R37] got %v, %v", all, err)
	}
	if broken, found, err := Find[corev1.Pod](children, "Broken", "x"); err == nil || found || broken == nil {
		t.Errorf("got %v, %v, %v", broken, found, err)
	}
	if _, err := List[corev1.Pod](children, "Broken"); err == nil {
		t.Error("the error is lost")
	}
}

func TestRequestIsASnapshot(t *testing.T) {
	item := newShopItem()
	item.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{"unknown":{"field":[1]}}`)}
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: lsv1alpha1.TargetSpec{
		Configuration: lsv1alpha1.NewAnyJSONPointer([]byte(`"SECRET"`)), SecretRef: &lsv1alpha1.LocalSecretReference{Name: "s"},
	}}
	live := newObserved("v1", "Pod", "a", object{"spec": object{"hostname": "h"}})
	req, err := NewRequest(item, target, live)
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string]any{}
	if err := json.Unmarshal(req.Raw, &raw); err != nil {
		t.Fatal(err)
	}
	config, _, _ := unstructured.NestedFieldNoCopy(raw, "spec", "config", "unknown")
	if diff := cmp.Diff(object{"field": []any{1.0}}, config); diff != "" {
		t.Errorf("[R5] %s", diff)
	}
	if req.Target.Name != "t" || req.Target.Spec.Configuration != nil || req.Target.Spec.SecretRef != nil || target.Spec.SecretRef == nil {
		t.Errorf("the target's content: %+v", req.Target)
	}
	// Changes by the handler must not affect the informer's object or the item.
	req.Item.Spec.Configuration.Raw[2] = 'X'
	req.Children[0].Object().SetName("changed")
	req.Children[0].Labels()["app"] = "changed"
	copy(req.Children[0].Raw(), "changed")
	pod, err := As[corev1.Pod](req.Children[0])
	if err != nil {
		t.Fatal(err)
	}
	pod.Labels["app"] = "changed"
	req.Children[0] = Child{}
	if diff := cmp.Diff(newObserved("v1", "Pod", "a", object{"spec": object{"hostname": "h"}}), live); diff != "" {
		t.Errorf("[R4] %s", diff)
	}
	if string(item.Spec.Configuration.Raw) != `{"unknown":{"field":[1]}}` {
		t.Errorf("[R4] the item changed: %s", item.Spec.Configuration.Raw)
	}
}

func TestConfigDecodesTheConfiguration(t *testing.T) {
	type config struct{ Replicas int }
	req := &SyncRequest{Item: newShopItem()}
	req.Item.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"a/v1","kind":"B","Replicas":3}`)}
	if got, err := Config[config](req); err != nil || got.Replicas != 3 {
		t.Errorf("Config(...) = %+v, %v, want 3 replicas", got, err)
	}
	req.Item.Spec.Configuration.Raw = []byte(`{"Replica":3}`)
	if _, err := Config[config](req); err == nil {
		t.Error("an unknown field is taken")
	}
}

// loose is the Go type of a custom resource. Its spec is a plain map.
type loose struct {
	metav1.TypeMeta `json:",inline"`

	Spec map[string]any `json:"spec"`
}

func (l *loose) DeepCopyObject() runtime.Object { return l }

func TestAsReturnsCopies(t *testing.T) {
	live := newObserved("v1", "Pod", "a", object{"spec": object{"a": object{"b": "c"}}})
	child := NewChild(live)
	own, err := As[loose](child)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := As[unstructured.Unstructured](child)
	if err != nil || plain.GetName() != "a" {
		t.Fatalf("[R37] got %v, %v", plain, err)
	}
	_ = unstructured.SetNestedField(own.Spec, "changed", "a", "b")
	_ = unstructured.SetNestedField(plain.Object, "changed", "spec", "a", "b")
	if diff := cmp.Diff(newObserved("v1", "Pod", "a", object{"spec": object{"a": object{"b": "c"}}}), live); diff != "" {
		t.Errorf("[R4] %s", diff)
	}
}
