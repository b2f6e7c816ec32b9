// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/declarative/internal/objects"
)

// WithStatus returns a copy of a child with the given status, as if the controller of the child had written the status.
// The child may have any form that declarative.SyncResponse.Children accepts. It may also be an element of
// Plan.Observed. The status is any value that marshals to a JSON object. WithStatus ends the test if it cannot read the
// child or the status.
func WithStatus(t testing.TB, child, status any) *unstructured.Unstructured {
	t.Helper()
	out := readOne(t, child)
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatalf("encode the status: %v", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatalf("the status of %s is not an object: %v", out.GetName(), err)
	}
	out.Object["status"] = fields
	return out
}

// WithReadyStatus returns a copy of a child with a status that makes the child ready by the rules of package readiness.
// The child may have any form that WithStatus accepts. If WithReadyStatus does not know which status makes the child
// ready, it ends the test. Use WithStatus for such a child.
func WithReadyStatus(t testing.TB, child any) *unstructured.Unstructured {
	t.Helper()
	object := readOne(t, child)
	out := WithStatus(t, object, newReadyStatus(object))
	if result := readiness.CheckObject(out); !result.IsReady() {
		t.Fatalf("Ready does not know which status makes a %s ready; use WithStatus: %s", out.GetKind(), result.Message)
	}
	return out
}

// readOne returns a copy of the object in `child`, which must contain exactly one object.
func readOne(t testing.TB, child any) *unstructured.Unstructured {
	t.Helper()
	if object, ok := child.(*unstructured.Unstructured); ok {
		return object.DeepCopy()
	}
	read, err := objects.Read(child)
	if err != nil {
		t.Fatalf("read the child: %v", err)
	}
	if len(read) != 1 {
		t.Fatalf("want one child, got %d", len(read))
	}
	read[0].FillKind(nil, func(schema.GroupVersionKind) bool { return true })
	return &unstructured.Unstructured{Object: read[0].Body}
}

type fields = map[string]any

// newReadyStatus returns a status that makes an object ready.
func newReadyStatus(object *unstructured.Unstructured) fields {
	replicas := getInt64(object, 1, "spec", "replicas")
	ready := []any{fields{"type": "Ready", "status": "True"}}
	status := fields{"observedGeneration": object.GetGeneration(), "conditions": ready}
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		status["conditions"] = []any{
			fields{"type": "Available", "status": "True"}, fields{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		}
		fill(status, replicas, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		status["currentRevision"], status["updateRevision"] = "1", "1"
		fill(status, replicas, "replicas", "currentReplicas", "updatedReplicas", "readyReplicas", "availableReplicas")
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		fill(status, replicas, "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		fill(status, 1, "desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		status = fields{"startTime": "2026-01-01T00:00:00Z", "conditions": []any{fields{"type": "Complete", "status": "True"}}}
		fill(status, getInt64(object, 1, "spec", "completions"), "succeeded")
	case schema.GroupKind{Kind: "Pod"}:
		status["phase"] = "Running"
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		status = fields{"phase": "Bound"}
	case schema.GroupKind{Kind: "Namespace"}:
		status = fields{"phase": "Active"}
	case schema.GroupKind{Kind: "Service"}:
		status = fields{"loadBalancer": fields{"ingress": []any{fields{"ip": "192.0.2.1"}}}}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		status = fields{"conditions": []any{fields{"type": "NamesAccepted", "status": "True"}, fields{"type": "Established", "status": "True"}}}
	}
	return status
}

func fill(status fields, value int64, names ...string) {
	for _, name := range names {
		status[name] = value
	}
}

// getInt64 returns the integer at a path in an object. If there is no integer at this path, it returns fallback.
func getInt64(object *unstructured.Unstructured, fallback int64, path ...string) int64 {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found {
		return fallback
	}
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return fallback
}
