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
	wanted, err := c.over(base)
	if err != nil {
		return Changes{}, err
	}
	return diffBodies(base, wanted, rulesFor(fresh), fresh.GetResourceVersion())
}

// On returns a copy of obj, of the same Go type, with the changes made; what obj has besides stays. obj is not
// changed and nothing is sent.
// Errors: obj cannot be expressed in JSON, c is not a merge patch, the result does not fit the type.
func (c Changes) On(obj client.Object) (client.Object, error) {
	base, err := toBody(obj)
	if err != nil {
		return nil, err
	}
	wanted, err := c.over(base)
	if err != nil {
		return nil, err
	}
	out, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", obj)
	}
	if err := setBody(out, wanted); err != nil {
		return nil, err
	}
	out.SetResourceVersion(obj.GetResourceVersion())
	return out, nil
}

// over makes the changes on a body. The changes' resourceVersion comes with them.
func (c Changes) over(body map[string]any) (map[string]any, error) {
	for _, data := range [][]byte{c.Metadata, c.Status} {
		if data == nil {
			continue
		}
		overlay, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("rebase changes: %w", err)
		}
		body = applyMerge(body, overlay)
	}
	return body, nil
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
