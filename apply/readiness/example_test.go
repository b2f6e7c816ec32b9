// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	health "github.com/gardener/landscaper/apis/deployer/utils/readinesschecks"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/deployerkit/deployerkit/apply/readiness"
)

func ExampleCheckObject() {
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec":     map[string]any{"type": "LoadBalancer", "clusterIP": "10.0.0.7"},
	}}
	result := readiness.CheckObject(service)
	fmt.Printf("%s: %s: %s\n", readiness.FormatName(service), result.State, result.Message)
	// Output: Service shop/web: Waiting: the load balancer has no address yet
}

func ExampleCompile() {
	check, err := readiness.Compile(health.CustomReadinessCheckConfiguration{
		Name:     "database is up",
		Resource: []lsv1alpha1.TypedObjectReference{{APIVersion: "example.com/v1", Kind: "Database"}},
		Requirements: []health.RequirementSpec{{
			JsonPath: "status.phase", Operator: selection.In,
			Value: []runtime.RawExtension{{Raw: []byte(`{"value":"Up"}`)}},
		}},
	})
	fmt.Println(check, err)
	// Output: <nil> resourceSelector[0].name: required
}
