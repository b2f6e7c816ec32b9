// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
)

// revisionFeatures describes the properties of a revision on which the checks depend.
type revisionFeatures struct {
	// jobs is true if Landscaper requests runs and deletions with job IDs.
	jobs bool
	// definitions returns Landscaper's CustomResourceDefinitions.
	definitions func() []*apiextv1.CustomResourceDefinition
	// statusField is a field of a deploy item's status. The CustomResourceDefinition of older revisions lacks this
	// field.
	statusField string
}

var features = map[contract.Revision]revisionFeatures{
	contract.RevisionJobID:      {jobs: true, definitions: controlplane.CRDs, statusField: "jobID"},
	contract.RevisionAnnotation: {definitions: controlplane.AnnotationRevisionCRDs, statusField: "phase"},
}

// revisionOf returns the newest revision whose status field exists in the given CustomResourceDefinition of deploy
// items. It returns "" if there is none.
func revisionOf(crd *apiextv1.CustomResourceDefinition) contract.Revision {
	for _, r := range contract.AllRevisions() {
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
