// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
)

// revisionFeatures is what the checks need to know about a revision.
type revisionFeatures struct {
	// jobs is true if job IDs request runs and deletions.
	jobs bool
	// definitions returns the definitions of Landscaper's types.
	definitions func() []*apiextv1.CustomResourceDefinition
	// statusField is a field of a deploy item's status that the definitions of older revisions do not have.
	statusField string
}

var features = map[contract.Revision]revisionFeatures{
	contract.RevisionJobID:      {jobs: true, definitions: controlplane.CRDs, statusField: "jobID"},
	contract.RevisionAnnotation: {definitions: controlplane.ClassicCRDs, statusField: "phase"},
}

// revisionOf returns the newest revision whose fields a definition of deploy items has, or "" if there is none.
func revisionOf(crd *apiextv1.CustomResourceDefinition) contract.Revision {
	for _, r := range contract.Revisions() {
		for _, v := range crd.Spec.Versions {
			if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				continue
			}
			if _, ok := v.Schema.OpenAPIV3Schema.Properties["status"].Properties[features[r].statusField]; ok {
				return r
			}
		}
	}
	return ""
}
