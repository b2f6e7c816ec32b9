// SPDX-License-Identifier: Apache-2.0

// Package drift_test tests packages ownership and watch with a real API server. It checks which writes of other clients
// are reported as drift.
package drift_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

func TestDrift(t *testing.T) {
	world.Run(t, "drift")
}

var (
	cp *controlplane.ControlPlane
	c  client.Client // client with the rights of an administrator
)

var _ = BeforeSuite(func(ctx SpecContext) {
	crds := []*apiextv1.CustomResourceDefinition{newDefinition("Sample", true), newDefinition("Whole", false), newDefinition("Shift", true)}
	cp = world.StartControlPlane(ctx, controlplane.Options{CRDs: crds})
	c = world.NewClient(GinkgoTB(), cp.Config)
})

const group = "drift.example.org"

func newGVK(g, version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: g, Version: version, Kind: kind}
}

// These are the kinds that the specs use. Sample has the subresources status and scale. Whole has no subresources, so
// its status is a part of the object.
var (
	configMap  = newGVK("", "v1", "ConfigMap")
	secret     = newGVK("", "v1", "Secret")
	service    = newGVK("", "v1", "Service")
	deployment = newGVK("apps", "v1", "Deployment")
	scalerV1   = newGVK("autoscaling", "v1", "HorizontalPodAutoscaler")
	scalerV2   = newGVK("autoscaling", "v2", "HorizontalPodAutoscaler")
	sample     = newGVK(group, "v1", "Sample")
	whole      = newGVK(group, "v1", "Whole")
	shift      = newGVK(group, "v1", "Shift")
)

var resources = map[schema.GroupVersionKind]string{
	configMap: "configmaps", secret: "secrets", service: "services", deployment: "deployments",
	scalerV1: "horizontalpodautoscalers", scalerV2: "horizontalpodautoscalers",
	sample: "samples", whole: "wholes", shift: "shifts",
}

func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(resources[kind])
}

// newDefinition returns the definition of a kind whose schema contains all types of lists and maps.
func newDefinition(kind string, subresources bool) *apiextv1.CustomResourceDefinition {
	list := func(listType string) apiextv1.JSONSchemaProps {
		p := apiextv1.JSONSchemaProps{Type: "array", XListType: &listType, Items: &apiextv1.JSONSchemaPropsOrArray{Schema: &apiextv1.JSONSchemaProps{Type: "string"}}}
		if listType == "map" {
			p.XListMapKeys = []string{"name"}
			p.Items.Schema = &apiextv1.JSONSchemaProps{Type: "object", Required: []string{"name"}, Properties: map[string]apiextv1.JSONSchemaProps{
				"name": {Type: "string"}, "value": {Type: "string"},
			}}
		}
		return p
	}
	preserve, atomic := true, "atomic"
	free := apiextv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
	text := &apiextv1.JSONSchemaPropsOrBool{Schema: &apiextv1.JSONSchemaProps{Type: "string"}}
	version := apiextv1.CustomResourceDefinitionVersion{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextv1.CustomResourceValidation{OpenAPIV3Schema: &apiextv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextv1.JSONSchemaProps{
				"spec": {Type: "object", Properties: map[string]apiextv1.JSONSchemaProps{
					"replicas": {Type: "integer"}, "free": free,
					"set": list("set"), "atomic": list("atomic"), "map": list("map"),
					"atomicMap": {Type: "object", XMapType: &atomic, AdditionalProperties: text},
				}},
				"status": free,
			},
		}},
	}
	if subresources {
		version.Subresources = &apiextv1.CustomResourceSubresources{
			Status: &apiextv1.CustomResourceSubresourceStatus{},
			Scale:  &apiextv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
		}
	}
	second := *version.DeepCopy()
	second.Name, second.Storage = "v2", false
	plural := map[string]string{"Sample": "samples", "Whole": "wholes", "Shift": "shifts"}[kind]
	return &apiextv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextv1.NamespaceScoped,
			Names:    apiextv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: plural[:len(plural)-1]},
			Versions: []apiextv1.CustomResourceDefinitionVersion{version, second},
		},
	}
}
