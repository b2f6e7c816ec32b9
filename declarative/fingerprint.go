// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
)

// fingerprint is a hash of a value. Equal values have equal fingerprints.
type fingerprint [16]byte

// printOf hashes values that marshal to JSON, which orders the keys of maps.
func printOf(values ...any) fingerprint {
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode(values) // encoding does not fail for the types in use
	return fingerprint(sum.Sum(nil)[:len(fingerprint{})])
}

// itemPrint hashes what others may change of an item, namely its own metadata and spec, and its target.
func itemPrint(req *SyncRequest) fingerprint {
	item := req.Item
	target := lsv1alpha1.Target{}
	if req.Target != nil {
		target = *req.Target
	}
	return printOf(
		item.Generation, item.DeletionTimestamp, item.Labels, foreign(item.Annotations), item.Spec,
		target.Name, target.UID, target.Labels, target.Annotations, target.Spec,
	)
}

// foreign returns the annotations without those that steer the contract with Landscaper.
func foreign(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if key != lsv1alpha1.OperationAnnotation && key != lsv1alpha1.ReconcileTimestampAnnotation && key != contract.AbortTimestampAnnotation {
			out[key] = value
		}
	}
	return out
}

// inputsPrint hashes everything that a handler can see besides the item. This is its last status, and the observed
// children without the fields that change with each write and without the fields that the handler itself wants. The
// handler only sees the latter because it set them the last time.
func inputsPrint(req *SyncRequest, desired []apply.Desired) fingerprint {
	wanted := map[apply.Ref]map[string]any{}
	for _, d := range desired {
		wanted[idOf(apply.RefOf(d.Object))] = d.Object.Object
	}
	values := []any{req.Status}
	for _, child := range req.Children {
		ref := child.Ref()
		want := wanted[idOf(ref)]
		if want == nil { // cluster-scoped, which only the API server knows
			ref.Namespace = ""
			want = findCluster(wanted, idOf(ref), child)
		}
		values = append(values, observedBeside(child.content().Object, want, ""))
	}
	return printOf(values...)
}

// findCluster finds the wanted object of a child without a namespace.
func findCluster(wanted map[apply.Ref]map[string]any, id apply.Ref, child Child) map[string]any {
	if child.content().GetNamespace() != "" {
		return nil
	}
	for ref, body := range wanted {
		if ref.Namespace = ""; ref == id {
			return body
		}
	}
	return nil
}

// idOf returns a reference that is the same for all versions of an object.
func idOf(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// volatile fields change with each write of an object.
var volatile = map[string]bool{
	".metadata.resourceVersion": true, ".metadata.managedFields": true, ".metadata.generation": true,
	".metadata.uid": true, ".metadata.creationTimestamp": true, ".status.observedGeneration": true,
}

// observedBeside returns an observed value without volatile and wanted fields. It does not change its arguments.
func observedBeside(value map[string]any, wanted map[string]any, path string) map[string]any {
	out := make(map[string]any, len(value))
	for key, field := range value {
		below := path + "." + key
		want, isWanted := wanted[key]
		fields, isMap := field.(map[string]any)
		wantFields, wantMap := want.(map[string]any)
		switch {
		case volatile[below]:
		case isMap && (!isWanted || wantMap):
			out[key] = observedBeside(fields, wantFields, below)
		case !isWanted:
			out[key] = field
		}
	}
	return out
}

// childrenPrint hashes the children that a handler wants, regardless of their order.
func childrenPrint(all map[string][]byte) fingerprint {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		_, _ = fmt.Fprintf(sum, "%d %s %d ", len(name), name, len(all[name]))
		_, _ = sum.Write(all[name])
	}
	return fingerprint(sum.Sum(nil)[:len(fingerprint{})])
}

// encodeAll encodes children by their names.
func encodeAll(desired []apply.Desired) map[string][]byte {
	out := make(map[string][]byte, len(desired))
	for _, d := range desired {
		raw, err := json.Marshal(d.Object.Object)
		if err != nil {
			continue // does not happen, because the object came from JSON
		}
		out[apply.RefOf(d.Object).String()] = raw
	}
	return out
}
