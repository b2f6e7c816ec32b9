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

// fingerprint stands for a value: equal values have equal prints.
type fingerprint [16]byte

// printOf hashes values that marshal to JSON, whose maps have an order there.
func printOf(values ...any) fingerprint {
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode(values) // what cannot be encoded is never equal to anything that can; all of ours can
	return fingerprint(sum.Sum(nil)[:len(fingerprint{})])
}

// itemPrint is of what somebody may change of an item: its own metadata and spec, and its target.
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

// foreign are annotations but for those that steer the contract with Landscaper.
func foreign(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if key != lsv1alpha1.OperationAnnotation && key != lsv1alpha1.ReconcileTimestampAnnotation && key != contract.AbortTimestampAnnotation {
			out[key] = value
		}
	}
	return out
}

// inputsPrint is of everything that a handler can see beside the item: its last status, and the observed children but for
// what changes with each write and for the fields that the handler itself wants. Those it would only see because it
// set them the last time.
func inputsPrint(req *SyncRequest, desired []apply.Desired) fingerprint {
	wanted := map[apply.Ref]map[string]any{}
	for _, d := range desired {
		wanted[idOf(apply.RefOf(d.Object))] = d.Object.Object
	}
	values := []any{req.Status}
	for _, child := range req.Children {
		ref := child.Ref()
		want := wanted[idOf(ref)]
		if want == nil { // cluster-scoped: only the API server knows that it has no namespace
			ref.Namespace = ""
			want = findCluster(wanted, idOf(ref), child)
		}
		values = append(values, observedBeside(child.content().Object, want, ""))
	}
	return printOf(values...)
}

// findCluster finds what is wanted of a child without a namespace.
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

// idOf is the same for all versions of an object.
func idOf(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// volatile fields change with each write of an object.
var volatile = map[string]bool{
	".metadata.resourceVersion": true, ".metadata.managedFields": true, ".metadata.generation": true,
	".metadata.uid": true, ".metadata.creationTimestamp": true, ".status.observedGeneration": true,
}

// observedBeside is an observed value without volatile fields and those that are wanted. Nothing is changed.
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

// childrenPrint is of the children that a handler wants, in any order.
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
			continue // cannot be: it came as JSON
		}
		out[apply.RefOf(d.Object).String()] = raw
	}
	return out
}
