// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errNoResourceVersion: without it a patch would overwrite whatever is stored by now.
var errNoResourceVersion = errors.New("the base object has no resourceVersion")

// Members of metadata that Diff sends, and those that say which object it is. All others belong to
// the API server and are ignored.
var (
	metadataMaps  = []string{"labels", "annotations"}
	metadataLists = []string{"finalizers", "ownerReferences"}
	identity      = []string{"name", "namespace", "uid"}
)

// Diff returns what makes wanted out of base: at most one metadata patch (labels, annotations,
// finalizers, ownerReferences) and at most one status patch. base is the object as it was read (its
// resourceVersion is the lock of the patches), wanted usually a changed deep copy of it. Both have the
// same Go type, typed or unstructured, and neither is changed.
// For DeployItems see the package comment: an all-zero base status counts as absent.
// Errors: *FieldError for a difference outside metadata and status, and for another name, namespace
// or uid; an error when an object cannot be expressed in JSON, or when there are changes but base has
// no resourceVersion.
func Diff(base, wanted client.Object) (Changes, error) {
	baseBody, wantedBody, err := toBodies(base, wanted)
	if err != nil {
		return Changes{}, err
	}
	return diffBodies(baseBody, wantedBody, rulesFor(base), base.GetResourceVersion())
}

func diffBodies(base, wanted map[string]any, rules statusRules, resourceVersion string) (Changes, error) {
	if err := checkUntouched(base, wanted); err != nil {
		return Changes{}, err
	}
	metadata := diffMetadata(object(base, fieldMetadata), object(wanted, fieldMetadata))
	status, err := diffStatus(base, wanted, rules)
	if err != nil {
		return Changes{}, err
	}
	if resourceVersion == "" && len(metadata)+len(status) > 0 {
		return Changes{}, errNoResourceVersion
	}
	return encode(metadata, status, resourceVersion)
}

// checkUntouched refuses differences in places that are not ours to write.
func checkUntouched(base, wanted map[string]any) error {
	baseMeta, wantedMeta := object(base, fieldMetadata), object(wanted, fieldMetadata)
	for _, key := range identity {
		if !equal(baseMeta[key], wantedMeta[key]) {
			return &FieldError{Path: fieldMetadata + "." + key}
		}
	}
	if path := firstDifference(rest(base, wanted), rest(wanted, base)); path != "" {
		return &FieldError{Path: path}
	}
	return nil
}

// rest returns what is neither metadata nor status. apiVersion and kind count only when both sides
// have them, since typed objects often carry none.
func rest(body, other map[string]any) map[string]any {
	out := maps.Clone(body)
	delete(out, fieldMetadata)
	delete(out, fieldStatus)
	for _, key := range []string{"apiVersion", "kind"} {
		if other[key] == nil {
			delete(out, key)
		}
	}
	return out
}

func diffMetadata(base, wanted map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range metadataMaps {
		if change := mergePatch(object(base, key), object(wanted, key)); len(change) > 0 {
			out[key] = change
		}
	}
	for _, key := range metadataLists {
		have, _ := base[key].([]any)
		want, _ := wanted[key].([]any)
		switch {
		case equalLists(have, want):
		case len(want) == 0:
			out[key] = nil
		default:
			out[key] = want
		}
	}
	return out
}

func diffStatus(base, wanted map[string]any, rules statusRules) (map[string]any, error) {
	for _, body := range []map[string]any{base, wanted} {
		if status, exists := body[fieldStatus]; exists && object(body, fieldStatus) == nil {
			return nil, fmt.Errorf("status is not an object but %T", status)
		}
	}
	have, want := object(base, fieldStatus), object(wanted, fieldStatus)
	if rules == nil {
		return mergePatch(have, want), nil
	}
	return rules(have, want), nil
}

func encode(metadata, status map[string]any, resourceVersion string) (Changes, error) {
	var out Changes
	var err error
	if len(metadata) > 0 {
		metadata[fieldResourceVersion] = resourceVersion
		if out.Metadata, err = json.Marshal(map[string]any{fieldMetadata: metadata}); err != nil {
			return Changes{}, fmt.Errorf("encode metadata patch: %w", err)
		}
	}
	if len(status) > 0 {
		body := lockedBy(resourceVersion)
		body[fieldStatus] = status
		if out.Status, err = json.Marshal(body); err != nil {
			return Changes{}, fmt.Errorf("encode status patch: %w", err)
		}
	}
	return out, nil
}

// lockedBy returns a patch that changes nothing and fails on top of any other resourceVersion.
func lockedBy(resourceVersion string) map[string]any {
	return map[string]any{fieldMetadata: map[string]any{fieldResourceVersion: resourceVersion}}
}
