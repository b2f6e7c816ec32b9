// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"github.com/gardener/landscaper/apis/crds"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CRDs returns Landscaper's custom resource definitions as they are today: a fresh copy each time.
func CRDs() []*apiextv1.CustomResourceDefinition { return crds.CRDs() }

// newerFields are the fields of a DeployItem that a Landscaper of the annotation revision (before v0.29)
// does not know.
var newerFields = map[string][]string{
	"spec": {"onDelete", "updateOnChangeOnly"},
	"status": {
		"deployItemPhase", "firstError", "jobID", "jobIDFinished", "jobIDGenerationTime", "lastErrors", "transitionTimes",
	},
}

// ClassicCRDs returns CRDs with those fields cut out of the DeployItem's schema that came with the job-ID
// revision. An API server with these definitions prunes the fields without an error, as an old Landscaper's does.
func ClassicCRDs() []*apiextv1.CustomResourceDefinition {
	all := CRDs()
	for _, crd := range all {
		if crd.Spec.Names.Kind != "DeployItem" {
			continue
		}
		for i := range crd.Spec.Versions {
			if s := crd.Spec.Versions[i].Schema; s != nil && s.OpenAPIV3Schema != nil {
				cutNewerFields(s.OpenAPIV3Schema.Properties)
			}
		}
	}
	return all
}

func cutNewerFields(properties map[string]apiextv1.JSONSchemaProps) {
	for part, fields := range newerFields {
		for _, field := range fields {
			delete(properties[part].Properties, field)
		}
	}
}
