// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"fmt"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/stategraph"
)

// compared returns a graph of a Service and a ConfigMap that a template makes of it.
func compared(template string) (*stategraph.Graph, error) {
	files := fstest.MapFS{"templates/page.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\n" + template)}}
	service := func(context.Context) (*corev1.Service, error) { return &corev1.Service{}, nil }
	return stategraph.NewGraph().
		Add("page", stategraph.Template(files, "page.yaml")).
		Add("service", stategraph.Object(service, stategraph.WithOutput("host", ".spec.clusterIP"))).
		Build()
}

// As in kro, what a template uses is required, and a name that does not exist is found before anything runs. All such faults are
// reported at once.
func ExampleTemplate_checkedBeforeARun() {
	graph, err := compared(`data: {address: '{{ .Output "service" "host" }}'}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Requires("page"))

	_, err = compared(`data: {name: '{{ .NameOf "servce" }}', address: '{{ .Output "service" "hots" }}'}`)
	fmt.Println(err)
	// Output:
	// [service]
	// build state graph: component "page": template: templates/page.yaml:4:17: NameOf: there is no component "servce" (did you mean "service"?)
	// component "page": template: templates/page.yaml:4:52: Output: the component "service" has no output "hots" (did you mean "host"?)
}

// Here kro leads: it checks each field of an expression against the schema of its kind. This package looks up fields when the
// component runs, so the graph builds although a Service has no field clusterIp.
func ExampleTemplate_fieldsAreNotChecked() {
	_, err := compared(`data: {address: '{{ (.Output "service").spec.clusterIp }}'}`)
	fmt.Println(err)
	// Output: <nil>
}

// Here JOSDK leads: it has conditions on single edges. In this package the body of a component decides whether there is an
// object, and what requires the component runs without one.
func ExampleObject_condition() {
	replica := func(ctx context.Context) (*corev1.Service, error) {
		config, err := stategraph.Config[struct{ Replicas int }](ctx)
		if err != nil || config.Replicas < 2 {
			return nil, err // this item has no such object, and the component is ready
		}
		return &corev1.Service{}, nil
	}
	_, err := stategraph.NewGraph().Add("replica", stategraph.Object(replica, stategraph.Optional())).Build()
	fmt.Println(err)
	// Output: <nil>
}
