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
	// GetStatusShape describes the status of a custom kind. The check calls it for objects without a status. If
	// GetStatusShape is nil, the check assumes StatusReports for every kind. An implementation can use the function
	// GetStatusShape of this package, which examines a CustomResourceDefinition.
	GetStatusShape func(schema.GroupVersionKind) StatusShape
	// Grace and Now apply to objects without a status, unless GetStatusShape returns StatusNone for their kind. Such an
	// object counts as not ready until its age at the time Now exceeds Grace. The controllers of some kinds never write a
	// status, although the definition declares one. If Now is zero, such an object is never ready.
	Grace time.Duration
	Now   time.Time
	// GetBinding returns when a PersistentVolumeClaim is bound. The check calls it only for claims that are not bound
	// yet. If GetBinding is nil, the check assumes BindingImmediate for every claim.
	GetBinding func(claim *unstructured.Unstructured) ClaimBinding
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

// CheckObject applies the default check with the zero Rules.
func CheckObject(obj *unstructured.Unstructured) Result { return Rules{}.CheckObject(obj) }

// CheckObject reports whether an object is ready. The object must have been read from the cluster and include the
// status. If obj is nil, which means that the object does not exist, the state of the result is StateWaiting.
func (r Rules) CheckObject(obj *unstructured.Unstructured) Result {
	if obj == nil {
		return newWaiting("does not exist")
	}
	if at := obj.GetDeletionTimestamp(); at != nil {
		return newWaiting(deletion.Format(obj))
	}
	if rule, ok := overlay[obj.GroupVersionKind().GroupKind()]; ok {
		if result := rule(obj); !result.IsReady() {
			return result
		}
	}
	if isPendingClaim(obj) {
		return r.checkPendingClaim(obj)
	}
	seen := r.checkObserved(obj)
	if !seen.IsReady() {
		return seen
	}
	result := checkWithKstatus(obj)
	result.IsUncertain = result.IsReady() && seen.IsUncertain
	return result
}

// checkWithKstatus returns the result that kstatus computes.
func checkWithKstatus(obj *unstructured.Unstructured) Result {
	computed, err := compute(toKnownForm(obj))
	if err != nil {
		return newWaiting("its status cannot be read: " + err.Error())
	}
	switch computed.Status {
	case status.CurrentStatus:
		return newReady()
	case status.FailedStatus:
		return newFailed(formatMessage(obj, computed))
	default:
		return newWaiting(formatMessage(obj, computed))
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
	toIntegers(whole.Object)
	return status.Compute(whole)
}

// toIntegers changes each whole number in a decoded object from float64 to int64. It modifies the object.
func toIntegers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = toIntegers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = toIntegers(v[i])
		}
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return value
}

// formatMessage returns the message of the kstatus result, followed by the hint for the object. If kstatus gives no
// message, the reason of the first condition in the result is used instead.
func formatMessage(obj *unstructured.Unstructured, computed *status.Result) string {
	text := computed.Message
	if text == "" && len(computed.Conditions) > 0 {
		text = computed.Conditions[0].Reason
	}
	return cmp.Or(text, "is not ready") + getHint(obj)
}

// checkObserved returns a ready result if the object's controller has seen the latest generation, and a waiting result
// if not. For an object without a generation, the result is ready.
func (r Rules) checkObserved(obj *unstructured.Unstructured) Result {
	generation, _ := toNumber(getField(obj.Object, "metadata", "generation"))
	if generation == 0 {
		return newReady()
	}
	state, _ := obj.Object["status"].(map[string]any)
	gvk := obj.GroupVersionKind()
	switch {
	case observingKinds[gvk.GroupKind()]:
		if _, found := state["observedGeneration"]; !found {
			return newWaiting("its controller has not observed it yet")
		}
	case isBuiltIn(gvk.Group):
	case len(state) == 0:
		return r.checkWithoutStatus(obj)
	default:
		result := checkReadyCondition(obj, generation)
		result.IsUncertain = result.IsReady() && state["conditions"] == nil && state["observedGeneration"] == nil
		return result
	}
	return newReady()
}

// checkWithoutStatus returns the result for a custom resource that has no status.
func (r Rules) checkWithoutStatus(obj *unstructured.Unstructured) Result {
	shape := StatusReports
	if r.GetStatusShape != nil {
		shape = r.GetStatusShape(obj.GroupVersionKind())
	}
	switch {
	case shape == StatusNone:
		return newReady()
	case r.Now.IsZero():
		return newWaiting("has no status yet")
	}
	left := obj.GetCreationTimestamp().Add(r.Grace).Sub(r.Now)
	if left <= 0 {
		return Result{State: StateReady, IsUncertain: true}
	}
	result := newWaiting(fmt.Sprintf("has no status yet; without a status, it counts as ready %s after its creation", r.Grace))
	result.RecheckAfter = left
	return result
}

// checkReadyCondition returns a waiting result if the condition Ready was observed at an older generation, and a ready
// result otherwise.
func checkReadyCondition(obj *unstructured.Unstructured, generation int64) Result {
	condition := findCondition(obj, "Ready")
	if seen, found := toNumber(condition["observedGeneration"]); found && seen < generation {
		return newWaiting(fmt.Sprintf("condition Ready is outdated: it was observed at generation %d, not %d", seen, generation))
	}
	return newReady()
}

// isBuiltIn reports whether an API group belongs to Kubernetes itself. The groups of CustomResourceDefinition and
// APIService are listed here because client-go's scheme does not contain them.
func isBuiltIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}

// GetStatusShape describes the status that a CustomResourceDefinition declares for one version. The result is
// StatusReports if the schema of the version declares conditions or observedGeneration in the status. Otherwise it is
// StatusOther if the version enables the status subresource, and StatusNone if it does not.
func GetStatusShape(crd *unstructured.Unstructured, version string) StatusShape {
	for _, item := range getList(crd.Object, "spec", "versions") {
		served, _ := item.(map[string]any)
		if served["name"] != version {
			continue
		}
		fields, _ := getField(served, "schema", "openAPIV3Schema", "properties", "status", "properties").(map[string]any)
		_, generation := fields["observedGeneration"]
		_, conditions := fields["conditions"]
		switch {
		case generation || conditions:
			return StatusReports
		case getField(served, "subresources", "status") != nil:
			return StatusOther
		}
	}
	return StatusNone
}
