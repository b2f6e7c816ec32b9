// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// normalise removes the fields that only the API server sets, and the empty fields that other programs fill (see
// filledFields). It moves the values in the field stringData of a Secret to the field data. If stringData remained in
// the manifest, server-side apply would not notice changes of data, and would not remove keys from data. A value that
// is not a string stays in stringData, so that checkStringData rejects it later.
func normalise(obj *unstructured.Unstructured) {
	if metadata, isMap := obj.Object["metadata"].(map[string]any); isMap {
		for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"} {
			delete(metadata, field)
		}
		for _, field := range []string{"labels", "annotations"} { // Stamp cannot add the owner's keys to a null value
			if metadata[field] == nil {
				delete(metadata, field)
			}
		}
	}
	moveStringData(obj)
	dropFilled(obj)
}

// moveStringData moves the stringData of a Secret to its data, as the API server does.
func moveStringData(obj *unstructured.Unstructured) {
	text, isMap := obj.Object["stringData"].(map[string]any)
	if !RefOf(obj).isSecret() || !isMap {
		return
	}
	data, isMap := obj.Object["data"].(map[string]any)
	if !isMap {
		data = map[string]any{}
	}
	for key, value := range text {
		if plain, isText := value.(string); isText {
			data[key] = base64.StdEncoding.EncodeToString([]byte(plain))
			delete(text, key)
		}
	}
	obj.Object["data"] = data
	if len(text) == 0 {
		delete(obj.Object, "stringData")
	}
}

// dropStatus removes the status of an object if its kind has a status subresource. The API server ignores this status,
// but it would be compared with the status that a controller writes. If it is not known whether the kind has a status
// subresource, dropStatus removes only a status that contains no values.
func dropStatus(o *object) {
	if o.kind.hasStatus || isBlank(o.Object.Object["status"]) {
		delete(o.Object.Object, "status")
	}
}

// isBlank reports whether a decoded value contains only null, "", empty lists and objects with such values.
func isBlank(value any) bool {
	all, isMap := value.(map[string]any)
	for _, field := range all {
		if !isBlank(field) {
			return false
		}
	}
	return isMap || isEmpty(value)
}

// checkStringData rejects the values in stringData that the function `normalise` did not move to data.
func (p *preparing) checkStringData(o *object) {
	left := o.Object.Object["stringData"]
	if left == nil || !o.ref.isSecret() {
		return
	}
	if fields, isMap := left.(map[string]any); isMap {
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			p.fault(invalid(o.ref, ".stringData."+key, "must be a string"))
		}
		return
	}
	p.fault(invalid(o.ref, ".stringData", "must be an object of strings"))
}

// check records the errors in a manifest that can be found without sending a request.
func (p *preparing) check(o *object) {
	for _, field := range [...]struct{ path, value string }{
		{".apiVersion", o.ref.APIVersion}, {".kind", o.ref.Kind}, {".metadata.name", o.ref.Name},
	} {
		if field.value == "" {
			p.fault(invalid(o.ref, field.path, "is required"))
		}
	}
	if !slices.Contains([]Policy{"", Manage, Fallback, Keep, Ignore, Immutable, Retain}, o.Policy) {
		p.fault(invalid(o.ref, "policy", "%q is not one of manage, fallback, keep, ignore, immutable, retain", o.Policy))
	}
	if !slices.Contains([]Strategy{"", Apply, Update, Patch, Merge, MergeOverwrite, Recreate, OnDelete}, o.Strategy) {
		p.fault(invalid(o.ref, "strategy", "%q is not one of apply, update, patch, merge, mergeOverwrite, recreate, onDelete", o.Strategy))
	}
	p.checkStringData(o)
	p.checkReserved(o, "", o.Object.Object)
	p.checkPatch(o, "patchAfterDeployment", o.PatchAfterDeployment)
	p.checkPatch(o, "patchBeforeDelete", o.PatchBeforeDelete)
	p.checkKeys(o, "annotateBeforeCreate", maps.Keys(o.AnnotateBeforeCreate))
	p.checkKeys(o, "annotateBeforeDelete", maps.Keys(o.AnnotateBeforeDelete))
}

// checkPatch rejects a patch that contains reserved labels or annotations, or that would remove the owner label or the
// owner annotations.
func (p *preparing) checkPatch(o *object, where string, patch map[string]any) {
	p.checkReserved(o, where, patch)
	if field := ownership.Unmarks(patch); field != "" {
		p.fault(invalid(o.ref, where+"."+field, "must not remove or replace the labels and annotations that identify the object's owner"))
	}
}

// checkReserved rejects reserved labels and annotations in a manifest or a patch.
func (p *preparing) checkReserved(o *object, where string, body map[string]any) {
	metadata, _ := body["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		p.checkKeys(o, where+".metadata."+field, maps.Keys(values))
	}
}

func (p *preparing) checkKeys(o *object, path string, keys func(func(string) bool)) {
	for _, key := range slices.Sorted(keys) {
		if ownership.IsReserved(key) {
			p.fault(invalid(o.ref, path+"."+key, "labels and annotations with the prefix %s are reserved for the deployer", ownership.Prefix))
		}
	}
}
