// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/deployerkit/deployerkit/internal/deletion"
)

// Rules configure the default check for custom kinds. The zero value is ready for use.
type Rules struct {
	// StatusOf describes the status of a custom kind. The check calls it for objects without a status. If StatusOf is
	// nil, the check assumes StatusReports for every kind. An implementation can use the function StatusOf of this
	// package, which examines a CustomResourceDefinition.
	StatusOf func(schema.GroupVersionKind) StatusShape
	// Grace and Now apply to objects without a status, unless StatusOf returns StatusNone for their kind. Such an object
	// counts as not ready until its age at the time Now exceeds Grace. The controllers of some kinds never write a
	// status, although the definition declares one. If Now is zero, such an object is never ready.
	Grace time.Duration
	Now   time.Time
	// BindingOf returns when a PersistentVolumeClaim is bound. The check calls it only for claims that are not bound
	// yet. If BindingOf is nil, the check assumes BindingImmediate for every claim.
	BindingOf func(claim *unstructured.Unstructured) ClaimBinding
}

// StatusShape describes which status a CustomResourceDefinition declares for its kind.
type StatusShape string

const (
	// StatusReports means that the definition declares observedGeneration or conditions, so a controller is expected to
	// set the status. An object without a status is not ready until its age exceeds Rules.Grace.
	StatusReports StatusShape = "Reports"
	// StatusOther means that the definition declares a status, but neither observedGeneration nor conditions. The
	// readiness of its objects is uncertain, even if they have a status.
	StatusOther StatusShape = "Other"
	// StatusNone means that the definition declares no status. Objects of the kind are ready at once.
	StatusNone StatusShape = "None"
)

// Of applies the default check with the zero Rules.
func Of(obj *unstructured.Unstructured) Result { return Rules{}.Of(obj) }

// Of reports whether an object is ready. The object must have been read from the cluster and include the status. If obj
// is nil, which means that the object does not exist, the state of the result is StateWaiting.
func (r Rules) Of(obj *unstructured.Unstructured) Result {
	if obj == nil {
		return waiting("does not exist")
	}
	if at := obj.GetDeletionTimestamp(); at != nil {
		return waiting(deletion.Text(obj))
	}
	if rule, ok := overlay[obj.GroupVersionKind().GroupKind()]; ok {
		if result := rule(obj); !result.Ready() {
			return result
		}
	}
	if isPendingClaim(obj) {
		return r.pendingClaim(obj)
	}
	seen := r.observed(obj)
	if !seen.Ready() {
		return seen
	}
	result := base(obj)
	result.Guessed = result.Ready() && seen.Guessed
	return result
}

// base returns the result that kstatus computes.
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

// compute calls kstatus. It converts a panic into an error, because kstatus panics on some malformed objects. After an
// error, compute calls kstatus again with a copy of the object in which whole numbers are int64, because kstatus
// requires that type.
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

// integers changes each whole number in a decoded object from float64 to int64. It modifies the object.
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

// message returns the message of the kstatus result, followed by the hint for the object. If kstatus gives no message,
// the reason of the first condition in the result is used instead.
func message(obj *unstructured.Unstructured, computed *status.Result) string {
	text := computed.Message
	if text == "" && len(computed.Conditions) > 0 {
		text = computed.Conditions[0].Reason
	}
	return cmp.Or(text, "is not ready") + hint(obj)
}

// observed returns a ready result if the object's controller has seen the latest generation, and a waiting result if
// not. For an object without a generation, the result is ready.
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
			return waiting("its controller has not observed it yet")
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

// withoutStatus returns the result for a custom resource that has no status.
func (r Rules) withoutStatus(obj *unstructured.Unstructured) Result {
	shape := StatusReports
	if r.StatusOf != nil {
		shape = r.StatusOf(obj.GroupVersionKind())
	}
	switch {
	case shape == StatusNone:
		return ready()
	case r.Now.IsZero():
		return waiting("has no status yet")
	}
	left := obj.GetCreationTimestamp().Add(r.Grace).Sub(r.Now)
	if left <= 0 {
		return Result{State: StateReady, Guessed: true}
	}
	result := waiting(fmt.Sprintf("has no status yet; without a status, it counts as ready %s after its creation", r.Grace))
	result.RecheckAfter = left
	return result
}

// readyOf returns a waiting result if the condition Ready was observed at an older generation, and a ready result
// otherwise.
func readyOf(obj *unstructured.Unstructured, generation int64) Result {
	condition := conditionOf(obj, "Ready")
	if seen, found := number(condition["observedGeneration"]); found && seen < generation {
		return waiting(fmt.Sprintf("condition Ready is outdated: it was observed at generation %d, not %d", seen, generation))
	}
	return ready()
}

// builtIn reports whether an API group belongs to Kubernetes itself. The groups of CustomResourceDefinition and
// APIService are listed here because client-go's scheme does not contain them.
func builtIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}

// StatusOf describes the status that a CustomResourceDefinition declares for one version. The result is StatusReports
// if the schema of the version declares conditions or observedGeneration in the status. Otherwise it is StatusOther if
// the version enables the status subresource, and StatusNone if it does not.
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
