// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/body"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// normalizeManifest removes the fields that only the API server sets, and the empty fields that other programs fill
// (see body.DropFilled). It moves the values in the field stringData of a Secret to the field data. If stringData
// remained in the manifest, server-side apply would not notice changes of data, and would not remove keys from data. A
// value that is not a string stays in stringData, so that checkStringData rejects it later.
func normalizeManifest(obj *unstructured.Unstructured) {
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
	mergeStringData(obj)
	body.DropFilled(obj)
}

// mergeStringData moves the stringData of a Secret to its data, as the API server does.
func mergeStringData(obj *unstructured.Unstructured) {
	text, isMap := obj.Object["stringData"].(map[string]any)
	if !isSecret(ToRef(obj)) || !isMap {
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
func dropStatus(o *desiredObject) {
	if o.kind.hasStatus || body.IsBlank(o.Object.Object["status"]) {
		delete(o.Object.Object, "status")
	}
}

// checkStringData rejects the values in stringData that the function normalizeManifest did not move to data.
func (p *preparer) checkStringData(o *desiredObject) {
	left := o.Object.Object["stringData"]
	if left == nil || !isSecret(o.ref) {
		return
	}
	if fields, isMap := left.(map[string]any); isMap {
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			p.addError(newInvalidError(o.ref, ".stringData."+key, "must be a string"))
		}
		return
	}
	p.addError(newInvalidError(o.ref, ".stringData", "must be an object of strings"))
}

// check records the errors in a manifest that can be found without sending a request.
func (p *preparer) check(o *desiredObject) {
	for _, field := range [...]struct{ path, value string }{
		{".apiVersion", o.ref.APIVersion}, {".kind", o.ref.Kind}, {".metadata.name", o.ref.Name},
	} {
		if field.value == "" {
			p.addError(newInvalidError(o.ref, field.path, "is required"))
		}
	}
	if !slices.Contains([]Policy{"", PolicyManage, PolicyFallback, PolicyKeep, PolicyIgnore, PolicyImmutable, PolicyRetain}, o.Policy) {
		p.addError(newInvalidError(o.ref, "policy", "%q is not one of manage, fallback, keep, ignore, immutable, retain", o.Policy))
	}
	if o.Strategy != "" && o.strategy() == nil {
		p.addError(newInvalidError(o.ref, "strategy", "%q is not one of apply, update, patch, merge, mergeOverwrite, recreate, onDelete", o.Strategy))
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
func (p *preparer) checkPatch(o *desiredObject, where string, patch map[string]any) {
	p.checkReserved(o, where, patch)
	if field := ownership.FindRemovedMark(patch); field != "" {
		p.addError(newInvalidError(o.ref, where+"."+field, "must not remove or replace the labels and annotations that identify the object's owner"))
	}
}

// checkReserved rejects reserved labels and annotations in a manifest or a patch.
func (p *preparer) checkReserved(o *desiredObject, where string, manifest map[string]any) {
	metadata, _ := manifest["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		p.checkKeys(o, where+".metadata."+field, maps.Keys(values))
	}
}

func (p *preparer) checkKeys(o *desiredObject, path string, keys func(func(string) bool)) {
	for _, key := range slices.Sorted(keys) {
		if ownership.IsReserved(key) {
			p.addError(newInvalidError(o.ref, path+"."+key, "labels and annotations with the prefix %s are reserved for the deployer", ownership.Prefix))
		}
	}
}
