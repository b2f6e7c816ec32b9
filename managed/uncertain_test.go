// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/contract"
)

// newSilentObject returns an object of a custom kind whose controller writes no status. It was created at noon.
func newSilentObject(kind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "mesh.example.com/v1", "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": name, "generation": int64(1)},
	}}
	obj.SetCreationTimestamp(metav1.NewTime(startTime))
	return obj
}

// getUncertainMessage returns the message of the condition ReadinessUnknown of the item, or "" if it has none.
func (w *testEnv) getUncertainMessage() string {
	if condition := contract.GetCondition(w.item.Status.Conditions, ConditionReadinessUnknown); condition != nil {
		return condition.Message
	}
	return ""
}

// addKinds makes the target serve kinds whose definitions declare conditions.
func (w *testEnv) addKinds(kinds ...string) {
	for _, kind := range kinds {
		w.cluster.statusShapes.Store(newSilentObject(kind, "").GroupVersionKind(), readiness.StatusReports)
	}
}

func TestKindsWithoutStatusAreReportedInACondition(t *testing.T) {
	w := newTestEnv(t)
	w.addKinds("Route", "Image")
	route, image := newSilentObject("Route", "a"), newSilentObject("Image", "b")
	inventory := apply.Inventory{Entries: []apply.Entry{
		{APIVersion: "mesh.example.com/v1", Kind: "Route", Namespace: "ns", Name: "a", UID: "1"},
		{APIVersion: "mesh.example.com/v1", Kind: "Image", Namespace: "ns", Name: "b", UID: "2"},
	}}
	run := func(objects ...*unstructured.Unstructured) (states []readiness.State) {
		r := w.begin(false)
		r.Inventory = inventory
		for _, obj := range objects {
			states = append(states, r.CheckReadiness(t.Context(), obj).State)
		}
		r.Finish()
		return states
	}
	check := func(name string, want string, states ...readiness.State) {
		t.Run(name+" [F94]", func(t *testing.T) {
			for _, state := range states {
				if state != readiness.StateReady {
					t.Errorf("want a ready object, got %s", state)
				}
			}
			if got := w.getUncertainMessage(); (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("want a condition with %q, got %q", want, got)
			}
		})
	}

	if states := run(route); states[0] != readiness.StateWaiting {
		t.Errorf("within the grace period, the object is %s, want Waiting [F94]", states[0])
	}
	check("there is no condition within the grace period", "")
	w.clock.Step(DefaultStatusGrace)
	check("the condition names the kinds after the grace period", ": Image.mesh.example.com, Route.mesh.example.com; use custom readiness checks", run(route, image)...)
	before := contract.GetCondition(w.item.Status.Conditions, ConditionReadinessUnknown).LastUpdateTime
	w.clock.Step(time.Minute)
	check("the condition stays if nothing has changed", ": Image.mesh.example.com, Route.mesh.example.com;", run()...)
	if after := contract.GetCondition(w.item.Status.Conditions, ConditionReadinessUnknown).LastUpdateTime; after != before {
		t.Errorf("the condition changed although nothing else did: %s, %s [F94]", before, after)
	}
	w = newTestEnv(t)
	w.addKinds("Route", "Image")
	w.clock.Step(DefaultStatusGrace)
	if state := w.begin(false).CheckReadiness(t.Context(), route).State; state != readiness.StateReady { // this run ends because the item waits
		t.Errorf("after the grace period, the object is %s, want Ready [F94]", state)
	}
	check("the condition names a kind that an earlier run of the job checked", ": Image.mesh.example.com, Route.mesh.example.com;", run(image)...)
	image.Object["status"] = map[string]any{"observedGeneration": int64(1)}
	check("the condition omits an object that has a status", ": Route.mesh.example.com;", run(image)...)
	inventory.Entries = inventory.Entries[1:]
	check("the condition is removed with the last such object", "", run()...)
}

func TestConditionAboutReadinessIsBounded(t *testing.T) {
	refs := []apply.Ref{}
	for i := range 30 {
		for _, name := range []string{"a", "b"} {
			refs = append(refs, apply.Ref{APIVersion: "example.com/v1", Kind: fmt.Sprintf("Kind%02d", i), Name: name})
		}
	}
	if got := describeUncertain(refs); strings.Count(got, "example.com") != maxUncertainKinds || !strings.Contains(got, " and 10 more;") {
		t.Errorf("want %d kinds and the number of the others, got %q [F94]", maxUncertainKinds, got)
	}
}
