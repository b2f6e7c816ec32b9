// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"fmt"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/stategraph"
)

// newServiceGraph returns a graph with a Service, and a ConfigMap whose template uses the Service.
func newServiceGraph(template string) (*stategraph.Graph, error) {
	files := fstest.MapFS{"templates/page.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\n" + template)}}
	service := func(context.Context) (*corev1.Service, error) { return &corev1.Service{}, nil }
	return stategraph.NewBuilder().
		Add("page", stategraph.Template(files, "page.yaml")).
		Add("service", stategraph.Object(service, stategraph.WithOutput("host", ".spec.clusterIP"))).
		Build()
}

// As in kro, a component requires the components that its template uses. Before anything runs, Build reports all names
// that do not exist.
func ExampleTemplate_checkedBeforeARun() {
	graph, err := newServiceGraph(`data: {address: '{{ .Output "service" "host" }}'}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Requires("page"))

	_, err = newServiceGraph(`data: {name: '{{ .NameOf "servce" }}', address: '{{ .Output "service" "hots" }}'}`)
	fmt.Println(err)
	// Output:
	// [service]
	// build state graph: component "page": template: templates/page.yaml:4:17: NameOf: there is no component "servce" (did you mean "service"?)
	// component "page": template: templates/page.yaml:4:52: Output: the component "service" has no output "hots" (did you mean "host"?)
}

// Here kro has an advantage: it checks each field in an expression against the schema of the kind. This package looks
// up fields only when the component runs. Therefore Build succeeds, although a Service has no field clusterIp.
func ExampleTemplate_fieldsAreNotChecked() {
	_, err := newServiceGraph(`data: {address: '{{ (.Output "service").spec.clusterIp }}'}`)
	fmt.Println(err)
	// Output: <nil>
}

// Here JOSDK has an advantage: it supports conditions for single edges. In this package, the function that returns the
// object decides whether the object exists. The components that require this component run even if there is no object.
func ExampleObject_condition() {
	replica := func(ctx context.Context) (*corev1.Service, error) {
		config, err := stategraph.Config[struct{ Replicas int }](ctx)
		if err != nil || config.Replicas < 2 {
			return nil, err // the component has no object for this item, and is ready
		}
		return &corev1.Service{}, nil
	}
	_, err := stategraph.NewBuilder().Add("replica", stategraph.Object(replica, stategraph.Optional())).Build()
	fmt.Println(err)
	// Output: <nil>
}
