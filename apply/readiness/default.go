// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Rules are the default check with the caller's knowledge about custom kinds. The zero value is ready for use.
type Rules struct {
	// StatusOf returns what is known about the status of a custom kind. It is called for objects without a status.
	// See the function StatusOf. If it is nil, StatusReports is assumed for every kind.
	StatusOf func(schema.GroupVersionKind) StatusShape
	// Grace is how long an object of StatusOther without a status is not ready after its creation. Now returns the
	// current time.
	Grace time.Duration
	Now   time.Time
}

// StatusShape describes what the definition of a custom kind says about its status.
type StatusShape string

const (
	// StatusReports means that the status has observedGeneration or conditions, so its controllers report. An object
	// without a status is not ready.
	StatusReports StatusShape = "Reports"
	// StatusOther means that there is a status of an unknown shape. An object without a status is not ready until
	// Rules.Grace is over.
	StatusOther StatusShape = "Other"
	// StatusNone means that the kind has no status. An object is ready at once.
	StatusNone StatusShape = "None"
)

// Of applies the default check with the zero Rules.
func Of(obj *unstructured.Unstructured) Result { return Rules{}.Of(obj) }

// Of reports whether the object, as read from the cluster with its status, is ready. A nil object does not exist, so
// its state is StateWaiting.
func (r Rules) Of(obj *unstructured.Unstructured) Result {
	if obj == nil {
		return waiting("does not exist")
	}
	if at := obj.GetDeletionTimestamp(); at != nil {
		return waiting("is being deleted" + finalizersOf(obj))
	}
	if rule, ok := overlay[obj.GroupVersionKind().GroupKind()]; ok {
		if result := rule(obj); !result.Ready() {
			return result
		}
	}
	seen := r.observed(obj)
	if !seen.Ready() {
		return seen
	}
	result := base(obj)
	result.Guessed = result.Ready() && seen.Guessed
	return result
}

// base returns the result of kstatus.
func base(obj *unstructured.Unstructured) Result {
	computed, err := compute(asKnown(obj))
	if err != nil {
		return waiting("its status cannot be read: " + err.Error())
	}
	switch computed.Status {
	case status.CurrentStatus:
		return ready()
	case status.FailedStatus:
		return failed(message(obj, computed))
	default:
		return waiting(message(obj, computed))
	}
}

// compute calls kstatus, which panics on some malformed objects and needs whole numbers to be int64. It converts the
// numbers in a copy.
func compute(obj *unstructured.Unstructured) (result *status.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, fmt.Errorf("%v", v)
		}
	}()
	if result, err = status.Compute(obj); err == nil {
		return result, nil
	}
	whole := obj.DeepCopy()
	integers(whole.Object)
	return status.Compute(whole)
}

// integers turns each whole float64 of a decoded object into an int64, in place.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return value
}

// message returns the message of kstatus, or the reason of its condition if there is none, and what else the object
// says about itself.
func message(obj *unstructured.Unstructured, computed *status.Result) string {
	text := computed.Message
	if text == "" && len(computed.Conditions) > 0 {
		text = computed.Conditions[0].Reason
	}
	if text == "" {
		text = "is not ready"
	}
	return text + hint(obj)
}

// observed checks that the object's controller has seen its latest generation. Objects without a generation pass.
func (r Rules) observed(obj *unstructured.Unstructured) Result {
	generation, _ := number(at(obj.Object, "metadata", "generation"))
	if generation == 0 {
		return ready()
	}
	state, _ := obj.Object["status"].(map[string]any)
	gvk := obj.GroupVersionKind()
	switch {
	case observing[gvk.GroupKind()]:
		if _, found := state["observedGeneration"]; !found {
			return waiting("its controller has not seen it yet")
		}
	case builtIn(gvk.Group):
	case len(state) == 0:
		return r.withoutStatus(obj)
	default:
		result := readyOf(obj, generation)
		result.Guessed = result.Ready() && state["conditions"] == nil && state["observedGeneration"] == nil
		return result
	}
	return ready()
}

// withoutStatus judges an object of a custom kind that has no status.
func (r Rules) withoutStatus(obj *unstructured.Unstructured) Result {
	shape := StatusReports
	if r.StatusOf != nil {
		shape = r.StatusOf(obj.GroupVersionKind())
	}
	switch shape {
	case StatusNone:
		return ready()
	case StatusOther:
		left := obj.GetCreationTimestamp().Add(r.Grace).Sub(r.Now)
		if left <= 0 {
			return Result{State: StateReady, Guessed: true}
		}
		result := waiting(fmt.Sprintf("has no status yet; if it gets none, it counts as ready %s after its creation", r.Grace))
		result.RecheckAfter = left
		return result
	default:
		return waiting("has no status yet")
	}
}

// readyOf refuses a condition Ready that belongs to an older generation.
func readyOf(obj *unstructured.Unstructured, generation int64) Result {
	condition := conditionOf(obj, "Ready")
	if seen, found := number(condition["observedGeneration"]); found && seen < generation {
		return waiting(fmt.Sprintf("condition Ready is of generation %d, not of %d", seen, generation))
	}
	return ready()
}

// builtIn reports whether Kubernetes itself serves a group. The groups that are not in client-go's scheme have their
// own rules.
func builtIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}

// StatusOf returns what a CustomResourceDefinition says about the status of a version. A kind without the subresource
// status, and without conditions or observedGeneration in its schema, has none.
func StatusOf(crd *unstructured.Unstructured, version string) StatusShape {
	for _, item := range list(crd.Object, "spec", "versions") {
		served, _ := item.(map[string]any)
		if served["name"] != version {
			continue
		}
		fields, _ := at(served, "schema", "openAPIV3Schema", "properties", "status", "properties").(map[string]any)
		_, generation := fields["observedGeneration"]
		_, conditions := fields["conditions"]
		switch {
		case generation || conditions:
			return StatusReports
		case at(served, "subresources", "status") != nil:
			return StatusOther
		}
	}
	return StatusNone
}
