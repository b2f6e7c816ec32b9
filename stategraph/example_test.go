// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/stategraph"
)

//go:embed templates
var templates embed.FS

// Config is spec.config of the items.
type Config struct {
	Namespace string `json:"namespace"`
	Image     string `json:"image"`
	Replicas  int32  `json:"replicas,omitempty"`
}

// Shop lists the components of each item.
type Shop struct {
	Config   stategraph.Resource
	Database stategraph.Resource `graph:"requires=config"`
	Web      stategraph.Resource `graph:"requires=database"`
}

// newSettings returns the settings of an item.
func newSettings(ctx context.Context) (*corev1.ConfigMap, error) {
	config, err := stategraph.Config[Config](ctx)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: config.Namespace},
		Data:       map[string]string{"image": config.Image},
	}, nil
}

// newDatabase uses the settings, regardless of their current name.
func newDatabase(ctx context.Context) (*appsv1.StatefulSet, error) {
	name, err := stategraph.Name(ctx, "config")
	if err != nil {
		return nil, err
	}
	ref, err := stategraph.Ref(ctx, "config")
	if err != nil {
		return nil, err
	}
	labels := map[string]string{"app": "db"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: ref.Namespace},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "db", Image: "db", Env: []corev1.EnvVar{{Name: "SETTINGS", Value: name}},
				}}},
			},
		},
	}, nil
}

func Example() {
	graph, err := stategraph.FromStruct(Shop{
		Config:   stategraph.Versioned(newSettings),
		Database: stategraph.Object(newDatabase),
		Web:      stategraph.Template(templates, "web.yaml", stategraph.WithKinds(appsv1.SchemeGroupVersion.WithKind("Deployment"))),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(graph.ToMermaid())
	rules, err := graph.RBAC()
	for _, rule := range rules {
		fmt.Println(rule.APIGroups, rule.Resources, err)
	}
	// Output:
	// flowchart TD
	//   n0["config"]
	//   n1["database"]
	//   n2["web"]
	//   n0 --> n1
	//   n1 --> n2
	// [] [configmaps] <nil>
	// [apps] [deployments statefulsets] <nil>
}

func ExampleBuilder_Build() {
	certificate := stategraph.External(stategraph.ExternalSpec{
		Reconcile: func(context.Context) error { return nil },
		Ready: func(context.Context) (stategraph.Readiness, error) {
			return stategraph.NotReady("the issuer takes its time"), nil
		},
	})
	_, err := stategraph.NewBuilder().
		Add("certificate", certificate, "proxy").
		Add("database", stategraph.Object(newDatabase), "certificate").
		Add("proxy", stategraph.Object(newDatabase), "databases", "database").
		Build()
	fmt.Println(err)
	// Output:
	// build state graph: component "certificate": may be unready, but has no listener that would trigger another check: add a listener, or make it always ready
	// component "proxy": requires "databases", which does not exist (did you mean "database"?)
	// components require each other: certificate → proxy → database → certificate
}
