// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/declarative"
)

func newOptions() declarative.Options {
	return declarative.Options{Children: []declarative.ChildKind{
		{APIVersion: "apps/v1", Kind: "Deployment"},
		{APIVersion: "v1", Kind: "Pod", Update: declarative.StrategyRecreate},
		{APIVersion: "v1", Kind: "Service"},
		{APIVersion: "v1", Kind: "ConfigMap", Update: declarative.StrategyOnDelete},
		{APIVersion: "v1", Kind: "Secret"},
		{APIVersion: "v1", Kind: "Namespace"},
	}}
}

// newStaticHandler creates a handler that returns the given children in each call.
func newStaticHandler(children ...any) declarative.Handler {
	return declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		return declarative.NewBuilder(map[string]any{"children": len(children)}).Add(children...).ResyncAfter(time.Minute).Wait("soon").Build()
	})
}

func newService(name, kind string) string {
	return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"` + name + `"},"spec":{"type":"` + kind + `"}}`
}

func TestRun(t *testing.T) {
	deployment := func(replicas int32, images ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
		for _, image := range images {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{
				Name: image, Image: image, Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("500m")}},
			})
		}
		return d
	}
	observed := deployment(3, "web", "injected")
	observed.Namespace, observed.UID, observed.ResourceVersion, observed.Status.Replicas = "shop", "u", "7", 3
	observed.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "injected"}}
	for name, tc := range map[string]struct {
		wants, observed []any
		want            []string
	}{
		"missing, changed and additional children [R13, R14, R16, R26]": {
			[]any{newService("a", "ClusterIP"), newService("b", "NodePort")},
			[]any{newService("b", "ClusterIP"), newService("c", "ClusterIP")},
			[]string{"create Service shop/a", "change Service shop/b .spec.type", "delete Service shop/c"},
		},
		"a change with the strategy Recreate":       {[]any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"hostname":"b"}}`}, []any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"hostname":"a"}}`}, []string{"recreate Pod shop/p .spec.hostname"}},
		"a change with the strategy OnDelete":       {[]any{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"b"}}`}, []any{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{}}`}, nil},
		"children without differences":              {[]any{newService("b", "ClusterIP")}, []any{newService("b", "ClusterIP")}, nil},
		"fields of other managers":                  {[]any{deployment(3, "web")}, []any{observed}, nil},
		"a field of one container":                  {[]any{deployment(2, "web")}, []any{observed}, []string{"change Deployment.apps shop/web .spec.replicas"}},
		"a container is missing":                    {[]any{deployment(3, "web", "more")}, []any{observed}, []string{"change Deployment.apps shop/web .spec.template.spec.containers"}},
		"a minimal child that exists [R28]":         {[]any{`{"apiVersion":"v1","kind":"Service","metadata":{"name":"b"}}`}, []any{newService("b", "ClusterIP")}, nil},
		"a minimal child that does not exist [R29]": {[]any{`{"apiVersion":"v1","kind":"Service","metadata":{"name":"b"}}`}, nil, []string{"missing Service shop/b"}},
		"a child of a cluster-scoped kind":          {[]any{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","labels":{"a":"b"}}}`}, []any{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","labels":{"a":"b"}}}`}, nil},
		"a child that is being deleted":             {[]any{newService("b", "NodePort")}, []any{`{"apiVersion":"v1","kind":"Service","metadata":{"name":"b","deletionTimestamp":"2024-01-01T00:00:00Z"},"spec":{}}`}, nil},
		"quantities and numbers":                    {[]any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":0.5,"memory":"1Gi"}}}]}}`}, []any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","ports":[{"containerPort":80.0}],"resources":{"limits":{"cpu":"500m","memory":"1024Mi"}}}]}}`}, nil},
		"stringData of a Secret":                    {[]any{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"a":"v"}}`}, []any{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"dg=="}}`}, nil},
		"an empty list":                             {[]any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","args":[]}]}}`}, []any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","args":["a"]}]}}`}, []string{"recreate Pod shop/p .spec.containers[0].args"}},
		"a list with fewer elements":                {[]any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","args":["a"]}]}}`}, []any{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","args":["a","b"]}]}}`}, []string{"recreate Pod shop/p .spec.containers[0].args"}},
	} {
		t.Run(name, func(t *testing.T) {
			item := NewItem(t, "shop", "web", map[string]any{})
			handler := newStaticHandler(tc.wants...)
			plan, err := Run(t.Context(), handler, newOptions(), item, tc.observed...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, plan.ListSteps()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			again, err := Run(t.Context(), handler, newOptions(), item, plan.Observed...)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range again.ListSteps() {
				if !strings.HasPrefix(step, string(ActionMissing)) {
					t.Errorf("[R27] a second call goes on: %s", step)
				}
			}
		})
	}
}

func TestPlanIsData(t *testing.T) {
	item := NewItem(t, "shop", "web", map[string]any{"replicas": 3})
	o := newOptions()
	o.Labels = map[string]string{"team": "a"}
	plan, err := Run(t.Context(), newStaticHandler(newService("b", "ClusterIP")), o, item, newService("b", "NodePort"), newService("c", "NodePort"))
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "b", "namespace": "shop", "labels": map[string]any{"team": "a"}},
		"spec": map[string]any{"type": "ClusterIP"},
	}
	want := []Step{
		{Action: ActionChange, Ref: apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "b"}, Fields: []string{".metadata.labels.team", ".spec.type"}, Object: wanted},
		{Action: ActionDelete, Ref: apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "c"}},
	}
	if diff := cmp.Diff(want, plan.Steps); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Service shop/c"}, plan.ListNames(ActionDelete)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(wanted, plan.Object("Service shop/b")); diff != "" || plan.Object("Service x") != nil {
		t.Errorf("-want +got:\n%s", diff)
	}
	if string(plan.Status) != `{"apiVersion":"declarative.deployerkit.dev/v1alpha1","children":1,"kind":"ProviderStatus","observedGeneration":1}` {
		t.Errorf("[R7, R10] got %s", plan.Status)
	}
	if plan.Wait != "soon" || plan.ResyncAfter != time.Minute {
		t.Errorf("plan = %+v, want Wait soon and ResyncAfter 1m", plan)
	}
}

func TestStatusFollowsTheObservedChildren(t *testing.T) {
	handler := declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		pod, found, err := declarative.Find[corev1.Pod](req.Children, "Pod", "p")
		if err != nil {
			return nil, err
		}
		return declarative.NewBuilder(map[string]any{"found": found, "phase": pod.Status.Phase}).Build()
	})
	for observed, want := range map[string]string{
		"": `{"apiVersion":"declarative.deployerkit.dev/v1alpha1","found":false,"kind":"ProviderStatus","observedGeneration":1,"phase":""}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":{"phase":"Running"}}`: `{"apiVersion":"declarative.deployerkit.dev/v1alpha1","found":true,"kind":"ProviderStatus","observedGeneration":1,"phase":"Running"}`,
	} {
		children := []any{}
		if observed != "" {
			children = append(children, observed)
		}
		plan, err := Run(t.Context(), handler, newOptions(), NewItem(t, "shop", "web", map[string]any{}), children...)
		if err != nil || string(plan.Status) != want {
			t.Errorf("[R7, R8] got %+v, %v, want %s", plan, err, want)
		}
	}
}

func TestRunFails(t *testing.T) {
	handler := func(response *declarative.SyncResponse, err error) declarative.Handler {
		return declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			return response, err
		})
	}
	for name, tc := range map[string]struct {
		handler  declarative.Handler
		options  declarative.Options
		observed any
		want     string
	}{
		"invalid options":                                     {newStaticHandler(), declarative.Options{}, nil, "options: Children: at least one kind is required"},
		"the handler fails [R3]":                              {handler(nil, errors.New("bad")), newOptions(), nil, "bad"},
		"the handler returns nil [R3]":                        {handler(nil, nil), newOptions(), nil, "neither a response nor an error"},
		"a child contains a status [R19]":                     {newStaticHandler(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":{"phase":"x"}}`), newOptions(), nil, "children[0].status.phase"},
		"the status is not an object [R12]":                   {handler(&declarative.SyncResponse{Status: 7}, nil), newOptions(), nil, "not a JSON object"},
		"an observed child is not valid YAML":                 {newStaticHandler(), newOptions(), "a: b: c", "observed child 0: is not valid YAML"},
		"an observed child has a kind that is not configured": {newStaticHandler(), newOptions(), `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"}}`, "the handler would never receive it"},
	} {
		t.Run(name, func(t *testing.T) {
			observed := []any{tc.observed}
			if tc.observed == nil {
				observed = nil
			}
			plan, err := Run(t.Context(), tc.handler, tc.options, NewItem(t, "shop", "web", map[string]any{}), observed...)
			if plan != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %+v, %v, want %q", plan, err, tc.want)
			}
		})
	}
}
