// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/stategraph"
)

// A graph can be built component by component. Each component lists the names of the components that it requires.
func ExampleNewBuilder() {
	configMap := func(context.Context) (*corev1.ConfigMap, error) { return &corev1.ConfigMap{}, nil }
	graph, err := stategraph.NewBuilder().
		Add("web", stategraph.Object(configMap), "database").
		Add("database", stategraph.Object(configMap)).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Order())
	// Output: [database web]
}

// SetOutput passes a value to the components that require the current component. These components read the value with
// Output.
func ExampleSetOutput() {
	register := stategraph.External(stategraph.ExternalSpec{
		Reconcile: func(ctx context.Context) error { return stategraph.SetOutput(ctx, "10.0.0.7") },
	})
	hosts := stategraph.Object(func(ctx context.Context) (*corev1.ConfigMap, error) {
		address, err := stategraph.Output[string](ctx, "register")
		if err != nil {
			return nil, err
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Data: map[string]string{"web": address}}, nil
	})
	graph, err := stategraph.NewBuilder().Add("register", register).Add("hosts", hosts, "register").Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Order())

	_, err = stategraph.Output[string](context.Background(), "register") // ctx does not belong to a run
	fmt.Println(errors.Is(err, stategraph.ErrNoRun))
	// Output:
	// [register hosts]
	// true
}

// Template renders objects from a text template. The template can use the configuration of the item and the outputs of
// required components.
func ExampleTemplate() {
	files := fstest.MapFS{"templates/settings.yaml": {Data: []byte(`
apiVersion: v1
kind: ConfigMap
metadata:
  namespace: {{ .Config.namespace }}
data:
  image: {{ .Config.image | quote }}
`)}}
	settings := stategraph.Template(files, "settings.yaml", stategraph.WithKinds(corev1.SchemeGroupVersion.WithKind("ConfigMap")))
	graph, err := stategraph.NewBuilder().Add("settings", settings).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Components())
	// Output: [settings]
}
