// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"crypto/sha256"
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
)

// fingerprint is a hash of a value. Equal values have equal fingerprints.
type fingerprint [16]byte

// hashValues hashes values that marshal to JSON. The order of map keys has no effect, because JSON encoding sorts them.
func hashValues(values ...any) fingerprint {
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode(values) // encoding does not fail for the types in use
	return fingerprint(sum.Sum(nil)[:len(fingerprint{})])
}

// hashItem hashes the parts of an item that users and other programs may change: its metadata, its spec and its
// target.
func hashItem(req *SyncRequest) fingerprint {
	item := req.Item
	target := lsv1alpha1.Target{}
	if req.Target != nil {
		target = *req.Target
	}
	return hashValues(
		item.Generation, item.DeletionTimestamp, item.Labels, filterForeign(item.Annotations), item.Spec,
		target.Name, target.UID, target.Labels, target.Annotations, target.Spec,
	)
}

// filterForeign returns a copy of the annotations. The copy omits the annotations that Landscaper and its deployers
// use.
func filterForeign(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if key != lsv1alpha1.OperationAnnotation && key != lsv1alpha1.ReconcileTimestampAnnotation && key != contract.AbortTimestampAnnotation {
			out[key] = value
		}
	}
	return out
}

// hashInputs hashes the inputs of a handler that follow from earlier runs: the status that the handler returned last,
// the observed children, and the children that are done. For each child, it omits the fields that change with each
// write. It also omits the fields that the handler itself sets, because their values only reflect its previous
// response.
func hashInputs(req *SyncRequest, desired []apply.Desired) fingerprint {
	wanted := map[apply.Ref]map[string]any{}
	for _, d := range desired {
		wanted[toID(apply.ToRef(d.Object))] = d.Object.Object
	}
	values := []any{req.Status, req.Finished}
	for _, child := range req.Children {
		values = append(values, removeWanted(child.content().Object, wanted[toID(child.Ref())], ""))
	}
	return hashValues(values...)
}

// toID returns a reference without the API version. The result is the same for all versions of a kind.
func toID(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// volatile lists the fields that change with each write of an object.
var volatile = map[string]bool{
	".metadata.resourceVersion": true, ".metadata.managedFields": true, ".metadata.generation": true,
	".metadata.uid": true, ".metadata.creationTimestamp": true, ".status.observedGeneration": true,
}

// removeWanted returns a copy of an observed value without the volatile fields and the fields that `wanted` contains.
func removeWanted(value map[string]any, wanted map[string]any, path string) map[string]any {
	out := make(map[string]any, len(value))
	for key, field := range value {
		below := path + "." + key
		want, isWanted := wanted[key]
		fields, isMap := field.(map[string]any)
		wantFields, wantMap := want.(map[string]any)
		switch {
		case volatile[below]:
		case isMap && (!isWanted || wantMap):
			out[key] = removeWanted(fields, wantFields, below)
		case !isWanted:
			out[key] = field
		}
	}
	return out
}

// encodeAll returns the desired children as JSON. The keys are the names of the children.
func encodeAll(desired []apply.Desired) map[string][]byte {
	out := make(map[string][]byte, len(desired))
	for _, d := range desired {
		out[apply.ToRef(d.Object).String()], _ = json.Marshal(d.Object.Object) // the object came from JSON, so it can be encoded
	}
	return out
}
