// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"github.com/gardener/landscaper/apis/crds"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CRDs returns new copies of Landscaper's current custom resource definitions.
func CRDs() []*apiextv1.CustomResourceDefinition { return crds.CRDs() }

// newerFields lists the DeployItem fields that a Landscaper of the annotation revision of the deployer contract does
// not have.
var newerFields = map[string][]string{
	"spec": {"onDelete", "updateOnChangeOnly"},
	"status": {
		"deployItemPhase", "firstError", "jobID", "jobIDFinished", "jobIDGenerationTime", "lastErrors", "transitionTimes",
	},
}

// AnnotationRevisionCRDs returns Landscaper's custom resource definitions without the DeployItem fields that a
// Landscaper of the annotation revision does not have, such as status.jobID. With the returned definitions, an API
// server silently drops these fields, as it does with the definitions of such a Landscaper.
func AnnotationRevisionCRDs() []*apiextv1.CustomResourceDefinition {
	all := CRDs()
	for _, crd := range all {
		if crd.Spec.Names.Kind != "DeployItem" {
			continue
		}
		for i := range crd.Spec.Versions {
			if s := crd.Spec.Versions[i].Schema; s != nil && s.OpenAPIV3Schema != nil {
				removeNewerFields(s.OpenAPIV3Schema.Properties)
			}
		}
	}
	return all
}

func removeNewerFields(properties map[string]apiextv1.JSONSchemaProps) {
	for part, fields := range newerFields {
		for _, field := range fields {
			delete(properties[part].Properties, field)
		}
	}
}
