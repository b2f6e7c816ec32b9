// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Changes is the difference of two versions of one object, split by the endpoint that takes it.
// Both members are JSON merge patches with metadata.resourceVersion inside; nil means nothing to send.
type Changes struct {
	// Metadata goes to the main resource.
	Metadata []byte
	// Status goes to the status subresource.
	Status []byte
}

// Empty tells that there is nothing to send.
func (c Changes) Empty() bool {
	return c.Metadata == nil && c.Status == nil
}

// Rebase carries the changes over to a freshly read version of the same object: the result has the
// resourceVersion of fresh and lacks what fresh already contains. Values win over those of fresh, and
// lists (finalizers, conditions) are replaced whole; a caller that must keep foreign list items
// computes its wish again with Diff instead. Neither c nor fresh is changed.
// Errors: fresh cannot be expressed in JSON, has no resourceVersion, or c is not a merge patch.
func (c Changes) Rebase(fresh client.Object) (Changes, error) {
	base, err := toBody(fresh)
	if err != nil {
		return Changes{}, err
	}
	wanted := base
	for _, data := range [][]byte{c.Metadata, c.Status} {
		if data == nil {
			continue
		}
		overlay, err := decode(data)
		if err != nil {
			return Changes{}, fmt.Errorf("rebase changes: %w", err)
		}
		wanted = applyMerge(wanted, overlay)
	}
	return diffBodies(base, wanted, rulesFor(fresh), fresh.GetResourceVersion())
}

// at returns the changes with another resourceVersion inside.
func (c Changes) at(resourceVersion string) (Changes, error) {
	metadata, err := withResourceVersion(c.Metadata, resourceVersion)
	if err != nil {
		return c, err
	}
	status, err := withResourceVersion(c.Status, resourceVersion)
	if err != nil {
		return c, err
	}
	return Changes{Metadata: metadata, Status: status}, nil
}

func withResourceVersion(data []byte, resourceVersion string) ([]byte, error) {
	if data == nil {
		return nil, nil
	}
	body, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	metadata := object(body, fieldMetadata)
	if metadata == nil {
		metadata = map[string]any{}
		body[fieldMetadata] = metadata
	}
	metadata[fieldResourceVersion] = resourceVersion
	return json.Marshal(body)
}
