// SPDX-License-Identifier: Apache-2.0

package body

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// Compute is a function that computes a complete object from a manifest and the object in the cluster. It modifies
// neither of them.
type Compute func(manifest, live *unstructured.Unstructured) *unstructured.Unstructured

// Replace returns the manifest, with the fields of the live object that a replacement must keep.
func Replace(manifest, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := manifest.DeepCopy()
	keepAll(out, live)
	return out
}

// Fill returns the live object, with those fields of the manifest that are missing or zero in it.
func Fill(manifest, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := manifest.DeepCopy()
	out.Object = jsondiff.Fill(live.DeepCopy().Object, out.Object)
	// The labels and annotations of an earlier item with the same name would remain.
	if owner, owned := ownership.GetOwner(manifest); owned {
		owner.Mark(out)
	}
	return out
}

// MergeOverwrite returns the live object with the values of the manifest. Lists are replaced as a whole.
func MergeOverwrite(manifest, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := manifest.DeepCopy()
	out.Object = jsondiff.MergeOverlay(live.DeepCopy().Object, out.Object)
	keepFilled(out, live)
	return out
}

// Set returns a copy of the live object in which the fields of another object are set.
func Set(live, other *unstructured.Unstructured) *unstructured.Unstructured {
	out, _ := jsondiff.MergeWanted(live.Object, other.Object).(map[string]any)
	return &unstructured.Unstructured{Object: out}
}

// HashFields returns a hash of a live object, restricted to the fields that the manifest contains.
func HashFields(manifest, live *unstructured.Unstructured) string {
	return Hash(jsondiff.FilterWanted(live.Object, manifest.Object))
}

// Hash returns a hash of a value, encoded as JSON.
func Hash(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "" // cannot happen because the objects were decoded from JSON; an object with an empty hash is written each time
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// keptFields lists the fields that keep their current values when an object is replaced, unless the manifest contains a
// value. These fields are immutable or set by the API server. The key of the map is a kind. The empty key stands for
// all kinds.
var keptFields = map[string][][]string{
	"":        {{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"}, {"metadata", "managedFields"}, {"metadata", "finalizers"}, {"metadata", "ownerReferences"}, {"status"}},
	"Job":     {{"spec", "selector"}},
	"Service": {{"spec", "clusterIP"}},
}

// generatedLabels are the labels that the API server adds to the template of a Job.
var generatedLabels = []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"}

// keepAll copies fields from the live object to obj if obj does not contain them: the keptFields, and the filledFields
// that other managers have set. A value that obj contains is sent, so that the API server reports it if the field is
// immutable.
func keepAll(obj, live *unstructured.Unstructured) {
	for _, kind := range []string{"", obj.GetKind()} {
		for _, path := range keptFields[kind] {
			keep(obj, live, path...)
		}
	}
	switch obj.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		for _, label := range generatedLabels {
			keep(obj, live, "spec", "template", "metadata", "labels", label)
		}
	case schema.GroupKind{Kind: "Service"}:
		if getString(obj, "spec", "clusterIP") == getString(live, "spec", "clusterIP") {
			keep(obj, live, "spec", "clusterIPs")
		}
	}
	keepFilled(obj, live)
}

// keep copies a field from the live object to obj if obj does not contain it. An empty text counts as absent.
func keep(obj, live *unstructured.Unstructured, path ...string) {
	given, found, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if found && given != "" {
		return
	}
	if value, found, _ := unstructured.NestedFieldCopy(live.Object, path...); found {
		_ = unstructured.SetNestedField(obj.Object, value, path...) // if a parent is not a map, the API server reports an error
	}
}

// getString returns a text at a path, or "".
func getString(obj *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(obj.Object, path...)
	return text
}
