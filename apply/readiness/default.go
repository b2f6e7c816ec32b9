// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Rules is the default check with what the caller knows about custom kinds. The
// zero value is ready for use.
type Rules struct {
	// ExpectsStatus tells whether somebody will write a status to objects of a
	// custom kind. An object of such a kind that has none is not ready. Answer
	// from discovery (kinds without the subresource status expect none) or from
	// the definition, see the function ExpectsStatus. nil: every kind does.
	ExpectsStatus func(schema.GroupVersionKind) bool
}

// Of is the default check with the zero Rules.
func Of(obj *unstructured.Unstructured) Result { return Rules{}.Of(obj) }

// Of tells whether the object, as read from the cluster with its status, is
// ready. nil is an object that does not exist: it waits.
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
	if result := r.observed(obj); !result.Ready() {
		return result
	}
	return base(obj)
}

// base is what kstatus says.
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

// compute calls kstatus, which panics on some malformed objects and wants whole
// numbers to be int64. The latter is mended in a copy.
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

// integers turns the whole float64 of a decoded object into int64, in place.
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

// message is kstatus's, or the reason of its condition where it has none, and
// what else the object says about itself.
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

// observed is the check that the object's controller has seen its latest
// generation. Objects without generation have nothing to see.
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
	case len(state) == 0 && (r.ExpectsStatus == nil || r.ExpectsStatus(gvk)):
		return waiting("has no status yet")
	default:
		return readyOf(obj, generation)
	}
	return ready()
}

// readyOf refuses a condition Ready that speaks of an older generation.
func readyOf(obj *unstructured.Unstructured, generation int64) Result {
	condition := conditionOf(obj, "Ready")
	if seen, found := number(condition["observedGeneration"]); found && seen < generation {
		return waiting(fmt.Sprintf("condition Ready is of generation %d, not of %d", seen, generation))
	}
	return ready()
}

// builtIn tells whether Kubernetes itself serves a group. Those that are not in
// client-go's scheme have rules of their own.
func builtIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}

// ExpectsStatus tells from a CustomResourceDefinition whether its controllers
// report on objects of a version: the schema of the status has
// observedGeneration or conditions. Kinds whose status nobody writes, such as
// those that are mere configuration, have neither.
func ExpectsStatus(crd *unstructured.Unstructured, version string) bool {
	for _, item := range list(crd.Object, "spec", "versions") {
		served, _ := item.(map[string]any)
		if served["name"] != version {
			continue
		}
		fields, _ := at(served, "schema", "openAPIV3Schema", "properties", "status", "properties").(map[string]any)
		_, generation := fields["observedGeneration"]
		_, conditions := fields["conditions"]
		return generation || conditions
	}
	return false
}
