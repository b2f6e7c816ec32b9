// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/deployerkit/deployerkit/apply"
)

func newShopItem() *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "4711", Generation: 3}}
}

func newKinds() []ChildKind {
	return []ChildKind{
		{APIVersion: "v1", Kind: "Pod", Update: StrategyRecreate},
		{APIVersion: "v1", Kind: "Service"},
		{APIVersion: "v1", Kind: "ConfigMap", Update: StrategyReplace},
		{APIVersion: "v1", Kind: "Secret", Update: StrategyOnDelete},
		{APIVersion: "v1", Kind: "Namespace"},
		{APIVersion: "apps/v1", Kind: "Deployment"},
		{APIVersion: "apps/v1", Kind: "DaemonSet"},
		{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
	}
}

func toDesired(t *testing.T, o Options, children ...any) ([]apply.Desired, error) {
	t.Helper()
	if o.Children == nil {
		o.Children = newKinds()
	}
	o.Default()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	return o.ToDesired(newShopItem(), &SyncResponse{Children: children}, nil, false)
}

// newScopeMapper returns a RESTMapper that knows one namespaced and one cluster-scoped kind.
func newScopeMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return mapper
}

func TestClusterScopedChildren(t *testing.T) {
	o := Options{Children: newKinds(), Tracking: &Tracking{OwnerReference: true}}
	o.Default()
	child := func(kind, namespace string) string {
		return `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"x","namespace":"` + namespace + `"},"spec":{}}`
	}
	for name, tc := range map[string]struct {
		kind, namespace string
		want            string
		owners          int
	}{
		"a cluster-scoped child has no namespace [F33]":                   {kind: "Namespace"},
		"a namespace of a cluster-scoped child is removed [F33]":          {kind: "Namespace", namespace: "elsewhere"},
		"a namespaced child gets the namespace and the owner of the item": {kind: "Service", want: "shop", owners: 1},
		"a child of an unknown kind counts as namespaced":                 {kind: "ConfigMap", want: "shop", owners: 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := o.ToDesired(newShopItem(), &SyncResponse{Children: []any{child(tc.kind, tc.namespace)}}, newScopeMapper(), true)
			if err != nil {
				t.Fatal(err)
			}
			if object := got[0].Object; object.GetNamespace() != tc.want || len(object.GetOwnerReferences()) != tc.owners {
				t.Errorf("namespace %q, %d owners, want %q and %d", object.GetNamespace(), len(object.GetOwnerReferences()), tc.want, tc.owners)
			}
		})
	}
	twice := &SyncResponse{Children: []any{child("Namespace", "a"), child("Namespace", "b")}}
	if _, err := o.ToDesired(newShopItem(), twice, newScopeMapper(), false); err == nil || !strings.Contains(err.Error(), "is the same object as children[0]") {
		t.Errorf("a cluster-scoped child in two namespaces: %v", err)
	}
}

// listBodies returns the desired objects as JSON values.
func listBodies(t *testing.T, desired []apply.Desired) []any {
	t.Helper()
	out := []any{}
	for _, d := range desired {
		out = append(out, d.Object.Object)
	}
	return out
}

type object = map[string]any

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"},"spec":{"hostname":"h"}}`

func TestDesiredBodies(t *testing.T) {
	podBody := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p", "namespace": "shop"}, "spec": object{"hostname": "h"}}
	typed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Hostname: "h"}}
	raw := object{}
	if err := json.Unmarshal([]byte(pod), &raw); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		children []any
		want     []any
	}{
		"raw JSON [R37]":  {[]any{json.RawMessage(pod)}, []any{podBody}},
		"bytes [R37]":     {[]any{[]byte(pod)}, []any{podBody}},
		"JSON text [R37]": {[]any{pod}, []any{podBody}},
		"a map [R37]":     {[]any{raw}, []any{podBody}},
		"a pointer to an unstructured object [R37]": {[]any{&unstructured.Unstructured{Object: raw}}, []any{podBody}},
		"an unstructured object":                    {[]any{unstructured.Unstructured{Object: raw}}, []any{podBody}},
		"YAML [R37]":                                {[]any{"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  hostname: h # a comment\n"}, []any{podBody}},
		"a typed object [R38]":                      {[]any{typed}, []any{object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p", "namespace": "shop"}, "spec": object{"hostname": "h"}}}},
		"a struct [R38]":                            {[]any{*typed}, []any{podBody}},
		"a slice of structs":                        {[]any{[]corev1.Pod{*typed}}, []any{podBody}},
		"an apply configuration":                    {[]any{applycorev1.Pod("p", "shop").WithSpec(applycorev1.PodSpec().WithHostname("h"))}, []any{podBody}},
		"empty slices":                              {[]any{[]*corev1.Pod(nil), []any{}}, []any{}},
		"no children [R13]":                         {nil, []any{}},
		"YAML documents with comments":              {[]any{"# nothing\n---\n" + pod + "\n---\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {type: ClusterIP}\n"}, []any{podBody, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "s", "namespace": "shop"}, "spec": object{"type": "ClusterIP"}}}},
		"a list of objects":                         {[]any{`{"apiVersion":"v1","kind":"List","items":[` + pod + `]}`}, []any{podBody}},
		"null is not set [Rh6]":                     {[]any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":null},"spec":{"hostname":"h","nodeName":null}}`}, []any{podBody}},
		"whole numbers stay whole":                  {[]any{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":3,"big":9007199254740993,"half":0.5}}`}, []any{object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "d", "namespace": "shop"}, "spec": object{"replicas": int64(3), "big": int64(9007199254740993), "half": 0.5}}}},
		"children in the order of the response": {
			[]any{pod, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{}}`},
			[]any{podBody, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a", "namespace": "shop"}, "data": object{}}},
		},
		"an empty list in a child is kept": {
			[]any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"hostname":"h","tolerations":[],"containers":[{"name":"c","resources":{}}]}}`},
			[]any{object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p", "namespace": "shop"}, "spec": object{"hostname": "h", "tolerations": []any{}, "containers": []any{object{"name": "c", "resources": object{}}}}}},
		},
		"zero values of typed objects, such as creationTimestamp and status, are omitted [R38]": {
			[]any{&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "h"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3}}, &appsv1.DaemonSet{
				ObjectMeta: metav1.ObjectMeta{Name: "d"},
				Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Hostname: "h"}}},
			}},
			[]any{
				object{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": object{"name": "h", "namespace": "shop"}, "spec": object{"maxReplicas": int64(3), "scaleTargetRef": object{"kind": "", "name": ""}}},
				object{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": object{"name": "d", "namespace": "shop"}, "spec": object{"template": object{"metadata": object{}, "spec": object{"hostname": "h"}}, "updateStrategy": object{}}},
			},
		},
		"explicit zero values are kept [R38]": {
			[]any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","creationTimestamp":null,"resourceVersion":"","generation":0,"labels":{}},"spec":{"hostname":"h"},"status":{"conditions":[],"phase":"","n":0}}`},
			[]any{podBody},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := toDesired(t, Options{}, tc.children...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, listBodies(t, got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDesiredDoesNotChangeTheResponse(t *testing.T) {
	child := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p", "labels": nil}, "spec": object{"hostname": "h"}}
	before := (&unstructured.Unstructured{Object: child}).DeepCopy().Object
	if _, err := toDesired(t, Options{Labels: map[string]string{"a": "b"}}, child); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, child); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

func TestDesiredErrors(t *testing.T) {
	service := func(metadata, more string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{` + metadata + `}` + more + `}`
	}
	for name, tc := range map[string]struct {
		children []any
		want     []string
	}{
		"a child with a status [R19]": {
			[]any{pod, service(`"name":"s"`, `,"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}`)},
			[]string{"Service s: children[1].status.loadBalancer.ingress: must not be set, because only the controller of the child writes its status"},
		},
		"a typed child with a status [R19]": {
			[]any{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}},
			[]string{"Pod p: children[0].status.phase: must not be set, because only the controller of the child writes its status"},
		},
		"an observed child that is returned unchanged [R18]": {
			[]any{service(`"name":"s","uid":"u","resourceVersion":"7","generation":2,"creationTimestamp":"2024-01-01T00:00:00Z","selfLink":"x","deletionTimestamp":"2024-01-01T00:00:00Z","managedFields":[{"manager":"m"}]`, "")},
			[]string{
				"Service s: children[0].metadata.creationTimestamp: is set by the API server: return only the fields that the child needs, not an observed child",
				"Service s: children[0].metadata.deletionTimestamp: is set by the API server: return only the fields that the child needs, not an observed child",
				"Service s: children[0].metadata.generation: is set by the API server: return only the fields that the child needs, not an observed child",
				"Service s: children[0].metadata.managedFields: is set by the API server: return only the fields that the child needs, not an observed child",
				"Service s: children[0].metadata.resourceVersion: is set by the API server: return only the fields that the child needs, not an observed child",
				"Service s: children[0].metadata.selfLink: is set by the API server: return only the fields that the child needs, not an observed child",
				"Service s: children[0].metadata.uid: is set by the API server: return only the fields that the child needs, not an observed child",
			},
		},
		"labels of the library [R18]": {
			[]any{service(`"name":"s","labels":{"deployerkit.dev/item":"x","a":1},"annotations":{"deployerkit.dev/item-name":"x"}`, "")},
			[]string{
				"Service s: children[0].metadata.labels[a]: must be a string",
				"Service s: children[0].metadata.labels[deployerkit.dev/item]: labels and annotations with the prefix deployerkit.dev/ are reserved for the library",
				"Service s: children[0].metadata.annotations[deployerkit.dev/item-name]: labels and annotations with the prefix deployerkit.dev/ are reserved for the library",
			},
		},
		"a kind that is not configured [Rx4]": {
			[]any{`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"}}`, `{"apiVersion":"apps/v1beta1","kind":"Deployment","metadata":{"name":"d"}}`},
			[]string{
				"Job.batch j: children[0].kind: batch/v1 Job is not a configured kind; Options.Children lists v1 Pod, v1 Service, v1 ConfigMap, v1 Secret, v1 Namespace, apps/v1 Deployment, apps/v1 DaemonSet, autoscaling/v2 HorizontalPodAutoscaler",
				"Deployment.apps d: children[1].kind: apps/v1beta1 Deployment is not a configured kind; Options.Children lists v1 Pod, v1 Service, v1 ConfigMap, v1 Secret, v1 Namespace, apps/v1 Deployment, apps/v1 DaemonSet, autoscaling/v2 HorizontalPodAutoscaler",
			},
		},
		"the same child twice": {
			[]any{pod, []any{service(`"name":"s"`, ""), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}"}},
			[]string{"Pod shop/p: children[1][1]: is the same object as children[0]"},
		},
		"a namespace that is not allowed [R30]": {
			[]any{service(`"name":"s","namespace":"kube-system"`, "")},
			[]string{`Service kube-system/s: children[0].metadata.namespace: "kube-system" is not allowed; the allowed namespaces are ["shop"]`},
		},
		"a child without a name or with a generateName": {
			[]any{service(`"generateName":"s-"`, "")},
			[]string{
				"Service: children[0].metadata.generateName: must not be set: a child needs a name that is the same in every call, see declarative.Name",
				"Service: children[0].metadata.name: is required",
			},
		},
		"a child without a kind": {
			[]any{`{"metadata":{"name":"x"}}`, struct{ Name string }{"x"}},
			[]string{"x: children[0]: lacks apiVersion or kind", "children[1]: lacks apiVersion or kind"},
		},
		"a nil child [R45]": {
			[]any{nil, (*corev1.Pod)(nil), "", "# only a comment", json.RawMessage(nil), json.RawMessage("null")},
			[]string{"children[0]: is nil", "children[1]: is nil", "children[2]: is empty", "children[3]: is empty", "children[4]: is empty", "and 1 more"},
		},
		"values that are not objects [R45]": {
			[]any{"just text", 7, make(chan int), `[1]`, "a: b: c: SECRET"},
			[]string{"children[0]: is not a JSON object", "children[1]: value of type int is not a JSON object", "children[2]: value of type chan int cannot be encoded", "children[3]: is not a JSON object", "children[4]: is not valid YAML: syntax error"},
		},
		"metadata with invalid types": {
			[]any{`{"apiVersion":"v1","kind":"Pod","metadata":[]}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":7,"namespace":{"a":1},"labels":"x"}}`},
			[]string{
				"Pod: children[0].metadata: must be an object", "Pod: children[0].metadata.name: is required",
				"Pod: children[1].metadata.name: must be a string", "Pod: children[1].metadata.namespace: must be a string", "Pod: children[1].metadata.labels: must be an object",
				"and 1 more",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := toDesired(t, Options{}, tc.children...)
			faults, ok := errors.AsType[apply.Errors](err)
			if !ok {
				t.Fatalf("error = %v, want apply.Errors", err)
			}
			got := []string{}
			for _, fault := range faults {
				got = append(got, fault.Error())
			}
			if last := tc.want[len(tc.want)-1]; last == "and 1 more" {
				tc.want, got = tc.want[:len(tc.want)-1], got[:len(got)-1]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if apply.GetClass(err) != apply.ClassPermanent {
				t.Error("trying again does not help")
			}
		})
	}
}

func TestDesiredNamespaces(t *testing.T) {
	in := func(namespace string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"` + namespace + `"},"spec":{}}`
	}
	for name, tc := range map[string]struct {
		allowed []string
		child   string
		want    string // the namespace of the child; empty if the child is refused
	}{
		"the namespace of the item is the default [R30]":                   {nil, in(""), "shop"},
		"the namespace of the item is allowed [R30]":                       {nil, in("shop"), "shop"},
		"another namespace is refused [R30]":                               {nil, in("other"), ""},
		"an empty list allows only the namespace of the item [R30]":        {[]string{}, in(""), "shop"},
		"a namespace in the list is allowed [R31]":                         {[]string{"a", "b"}, in("b"), "b"},
		"a namespace that is not in the list is refused [R31]":             {[]string{"a", "b"}, in("shop"), ""},
		"the first namespace of the list is the default":                   {[]string{"a", "b"}, in(""), "a"},
		"the namespace of the item is the default if the list contains it": {[]string{"a", "shop"}, in(""), "shop"},
		"each namespace is allowed with AnyNamespace [R31]":                {[]string{AnyNamespace}, in("kube-system"), "kube-system"},
		"the namespace of the item is the default with AnyNamespace":       {[]string{AnyNamespace}, in(""), "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := toDesired(t, Options{Namespaces: tc.allowed}, tc.child)
			namespace := ""
			if err == nil {
				namespace = got[0].Object.GetNamespace()
			}
			if namespace != tc.want {
				t.Errorf("got %q (%v), want %q", namespace, err, tc.want)
			}
		})
	}
}

func TestMinimalChildrenAreKept(t *testing.T) {
	observed := NewChild(&unstructured.Unstructured{Object: object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p", "namespace": "shop", "uid": "u", "labels": object{"a": "b"}},
		"spec": object{"hostname": "h"}, "status": object{"phase": "Running"},
	}})
	for name, tc := range map[string]struct {
		child any
		want  apply.Policy
	}{
		"a child with four fields is kept [R28]":            {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"}}`, apply.PolicyRetain},
		"a child without a namespace is kept [R28]":         {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`, apply.PolicyRetain},
		"the result of Child.Keep is kept [R28]":            {observed.Keep(), apply.PolicyRetain},
		"a child whose other fields are null is kept [R28]": {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":null},"spec":null}`, apply.PolicyRetain},
		"a typed child with only a name is kept [R28, R38]": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, apply.PolicyRetain},
		"a child with an empty spec in JSON is applied":     {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{}}`, ""},
		"a child with a label is applied":                   {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}}}`, ""},
		"a typed child with a label is applied":             {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}}}, ""},
		"a typed child with data is applied":                {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Data: map[string]string{"a": ""}}, ""},
		"a Namespace with only a name is kept":              {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, apply.PolicyRetain},
		"a child with a finalizer is applied":               {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","finalizers":["a/b"]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Labels: map[string]string{"l": "v"}, Tracking: &Tracking{}}
			got, err := toDesired(t, o, tc.child)
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Policy != tc.want {
				t.Errorf("policy %q, want %q", got[0].Policy, tc.want)
			}
			labelled := got[0].Object.GetLabels()["l"] == "v"
			if retained := tc.want == apply.PolicyRetain; labelled == retained {
				t.Errorf("labels are %v", got[0].Object.GetLabels())
			}
		})
	}
}

func TestEmptyTypedChildren(t *testing.T) {
	typed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	entry := apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "p", UID: "u", Hash: "h"}
	named := func(change func(*apply.Entry)) apply.Entry {
		out := entry
		change(&out)
		return out
	}
	for name, tc := range map[string]struct {
		child any
		entry apply.Entry
		want  apply.Policy
	}{
		"an empty typed child that was written before is applied [F25]":             {typed, entry, ""},
		"an empty typed child that was written in another version is applied [F25]": {typed, named(func(e *apply.Entry) { e.APIVersion = "v2" }), ""},
		"an empty typed child of a cluster-scoped kind is applied [F25]": {
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, named(func(e *apply.Entry) { e.Kind, e.Namespace = "Namespace", "" }), "",
		},
		"an empty typed child that was only adopted is kept [F25, R28]":   {typed, named(func(e *apply.Entry) { e.Hash = "" }), apply.PolicyRetain},
		"an empty typed child is kept if another child was written [F25]": {typed, named(func(e *apply.Entry) { e.Name = "q" }), apply.PolicyRetain},
		"an empty child in JSON is kept [F25, R28]":                       {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p"}}`, entry, apply.PolicyRetain},
	} {
		t.Run(name, func(t *testing.T) {
			item := newShopItem()
			if err := (&providerStatus{inventory: apply.Inventory{Entries: []apply.Entry{tc.entry}}}).store(item); err != nil {
				t.Fatal(err)
			}
			o := Options{Children: newKinds()}
			o.Default()
			got, err := o.ToDesired(item, &SyncResponse{Children: []any{tc.child}}, newScopeMapper(), false)
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Policy != tc.want || (got[0].Hint == "") != (tc.want == apply.PolicyRetain) {
				t.Errorf("policy %q, want %q; hint %q", got[0].Policy, tc.want, got[0].Hint)
			}
		})
	}
}

func TestUpdateStrategies(t *testing.T) {
	for kind, want := range map[string]apply.Strategy{
		"Service": apply.StrategyApply, "ConfigMap": apply.StrategyUpdate, "Pod": apply.StrategyRecreate, "Secret": apply.StrategyOnDelete,
	} {
		t.Run(kind, func(t *testing.T) {
			got, err := toDesired(t, Options{}, `{"apiVersion":"v1","kind":"`+kind+`","metadata":{"name":"x"},"spec":{}}`)
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Strategy != want {
				t.Errorf("got %q, want %q", got[0].Strategy, want)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	tracking := &Tracking{InstanceLabel: "my/instance"}
	o := Options{Name: "echo", Labels: map[string]string{"team": "a", "app": "default"}, Tracking: tracking}
	child := func(labels string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","labels":{` + labels + `}},"spec":{}}`
	}
	got, err := toDesired(t, o, child(`"app":"own"`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"team": "a", "app": "own", "my/instance": "4711", DefaultManagedByLabel: "echo"}
	if diff := cmp.Diff(want, got[0].Object.GetLabels()); diff != "" {
		t.Errorf("[Rx5] %s", diff)
	}
	if _, err := toDesired(t, o, child(`"my/instance":"mine"`)); err == nil || err.Error() != "Service shop/s: children[0].metadata.labels[my/instance]: is set by Options.Tracking" {
		t.Errorf("error = %v, want %q", err, "Service shop/s: children[0].metadata.labels[my/instance]: is set by Options.Tracking")
	}
	got, err = toDesired(t, Options{}, child(""))
	if err != nil || len(got[0].Object.GetLabels()) > 0 {
		t.Errorf("[Rx5] labels that were not requested: %v, %v", got, err)
	}
}

func TestOwnerReference(t *testing.T) {
	o := Options{Children: newKinds(), Namespaces: []string{AnyNamespace}, Tracking: &Tracking{OwnerReference: true}}
	o.Default()
	child := func(namespace, owners string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"` + namespace + `","ownerReferences":[` + owners + `]},"spec":{}}`
	}
	ours := metav1.OwnerReference{APIVersion: "landscaper.gardener.cloud/v1alpha1", Kind: "DeployItem", Name: "web", UID: "4711", Controller: new(true)}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "1"}
	for name, tc := range map[string]struct {
		child string
		owns  bool
		want  []metav1.OwnerReference
	}{
		"a child in the namespace of the item gets an owner reference [Rx5]":     {child("shop", ""), true, []metav1.OwnerReference{ours}},
		"a child in another cluster gets no owner reference [Rx5]":               {child("shop", ""), false, nil},
		"a child in another namespace gets no owner reference [Rx5]":             {child("other", ""), true, nil},
		"the owner references of the handler are kept":                           {child("shop", `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"}`), true, []metav1.OwnerReference{other, ours}},
		"an owner reference that the handler has copied is not repeated":         {child("shop", `{"apiVersion":"landscaper.gardener.cloud/v1alpha1","kind":"DeployItem","name":"web","uid":"4711"}`), true, []metav1.OwnerReference{ours}},
		"only the owner references of the handler are kept in another namespace": {child("other", `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"}`), true, []metav1.OwnerReference{other}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := o.ToDesired(newShopItem(), &SyncResponse{Children: []any{tc.child}}, nil, tc.owns)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got[0].Object.GetOwnerReferences()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTypedKindsOfCustomScheme(t *testing.T) {
	own := runtime.NewScheme()
	own.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Pod"}, &corev1.Pod{})
	got, err := toDesired(t, Options{Scheme: own, Children: []ChildKind{{APIVersion: "example.com/v2", Kind: "Pod"}}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	want := schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Pod"}
	if got[0].Object.GroupVersionKind() != want {
		t.Errorf("[R37] got %s", got[0].Object.GroupVersionKind())
	}
}

// FuzzResponse returns arbitrary text as a child. The result must be either an error or an object that can be copied
// and encoded, and that has an allowed kind and an allowed namespace. An error consists of short single lines, is the
// same each time, and contains no data from the text.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		pod, "", "null", "[]", "{}", `{"apiVersion":"v1","kind":"List","items":[null]}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"a":[]},"ownerReferences":{}}}`,
		"a: &a [*a]", "---\n---", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":[1]},"status":[{}]}`, "\xff", "? a\n: b", "1e400", `{"apiVersion":"v1","kind":"Pod","metadata":"m"}`,
		`{"apiVersion":"v1","kind":"Secret\n","metadata":{"name":"x\r"},"data":{"a":"CANARY-4711"}}`, "apiVersion: v1\nkind: Pod\ndata: [CANARY-4711\nx: :", "kind: Pod\ndata: {a: !!binary CANARY-4711}",
	} {
		f.Add(seed)
	}
	o := Options{Children: newKinds(), Labels: map[string]string{"a": "b"}, Tracking: &Tracking{OwnerReference: true}}
	o.Default()
	item := newShopItem()
	f.Fuzz(func(t *testing.T, text string) {
		for _, child := range []any{text, json.RawMessage(text), []byte(text), []any{text, text}} {
			response := &SyncResponse{Children: []any{child}}
			desired, err := o.ToDesired(item, response, nil, true)
			if err != nil {
				_, again := o.ToDesired(item, response, nil, false)
				if line := err.Error(); line == "" || len(line) > 1024 || strings.ContainsAny(line, "\n\r") || strings.Contains(line, "CANARY-4711") || again == nil || again.Error() != line {
					t.Errorf("first %q, then %v", line, again)
				}
				continue
			}
			seen := map[apply.Ref]bool{}
			for _, d := range desired {
				if ref := apply.ToRef(d.Object); seen[ref] || !slices.Contains([]string{"", item.Namespace}, ref.Namespace) || d.Strategy == "" && d.Policy == "" {
					t.Errorf("%s, there already: %t, strategy %q", ref, seen[ref], d.Strategy)
				} else {
					seen[ref] = true
				}
				if raw, err := json.Marshal(d.Object.DeepCopy().Object); err != nil || len(raw) == 0 {
					t.Errorf("cannot be encoded: %v", err)
				}
				if d.Object.GetName() == "" || d.Object.GetKind() == "" {
					t.Errorf("has no name or no kind: %v", d.Object.Object)
				}
			}
			encodeAll(desired)
		}
	})
}
