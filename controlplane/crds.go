// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"github.com/gardener/landscaper/apis/crds"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CRDs returns Landscaper's current custom resource definitions, as a new copy each time.
func CRDs() []*apiextv1.CustomResourceDefinition { return crds.CRDs() }

// newerFields are the fields of a DeployItem that Landscaper before v0.29, which follows the annotation revision, does
// not have.
var newerFields = map[string][]string{
	"spec": {"onDelete", "updateOnChangeOnly"},
	"status": {
		"deployItemPhase", "firstError", "jobID", "jobIDFinished", "jobIDGenerationTime", "lastErrors", "transitionTimes",
	},
}

// ClassicCRDs returns CRDs without the fields of the DeployItem's schema that the job-ID revision added. An API server
// with these definitions prunes the fields without an error, like that of an old Landscaper.
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
