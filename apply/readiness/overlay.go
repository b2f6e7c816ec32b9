// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// overlay contains additional rules for kinds that kstatus considers ready too early. The rule for the kind is
// evaluated first. If its result is ready, kstatus is evaluated as well.
var overlay = map[schema.GroupKind]func(*unstructured.Unstructured) Result{
	{Group: "", Kind: "Service"}:  service,
	{Group: "", Kind: "Pod"}:      pod,
	claimKind:                     claim,
	{Group: "batch", Kind: "Job"}: job,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: apiService,
}

// observing contains the built-in kinds whose controllers always set status.observedGeneration.
var observing = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:            true,
	{Group: "apps", Kind: "StatefulSet"}:           true,
	{Group: "apps", Kind: "DaemonSet"}:             true,
	{Group: "apps", Kind: "ReplicaSet"}:            true,
	{Kind: "ReplicationController"}:                true,
	{Group: "policy", Kind: "PodDisruptionBudget"}: true,
}

// asKnown converts an object into a form for which kstatus has suitable rules. It turns a ReplicationController into a
// ReplicaSet. It replaces the update strategy OnDelete of a StatefulSet by a rolling update whose partition excludes
// all pods from the update.
func asKnown(obj *unstructured.Unstructured) *unstructured.Unstructured {
	switch obj.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "ReplicationController"}:
		known := maps.Clone(obj.Object)
		known["apiVersion"], known["kind"] = "apps/v1", "ReplicaSet"
		return &unstructured.Unstructured{Object: known}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		spec, _ := obj.Object["spec"].(map[string]any)
		if text(spec, "updateStrategy", "type") != "OnDelete" {
			return obj
		}
		spec = maps.Clone(spec)
		partition := cmp.Or[any](spec["replicas"], int64(1))
		spec["updateStrategy"] = map[string]any{"rollingUpdate": map[string]any{"partition": partition}}
		known := maps.Clone(obj.Object)
		known["spec"] = spec
		return &unstructured.Unstructured{Object: known}
	}
	return obj
}

func service(obj *unstructured.Unstructured) Result {
	if text(obj.Object, "spec", "type") != "LoadBalancer" {
		return ready()
	}
	if len(list(obj.Object, "status", "loadBalancer", "ingress")) == 0 {
		return waiting("the load balancer has no address yet")
	}
	return ready()
}

func pod(obj *unstructured.Unstructured) Result {
	if text(obj.Object, "status", "phase") != "Failed" {
		return ready()
	}
	return failed(join("has failed", text(obj.Object, "status", "reason"), text(obj.Object, "status", "message")))
}

func job(obj *unstructured.Unstructured) Result {
	if failure := conditionOf(obj, "Failed"); failure["status"] == "True" {
		return failed(join("has failed", text(failure, "reason"), text(failure, "message")))
	}
	if conditionOf(obj, "Complete")["status"] == "True" {
		return ready()
	}
	if at(obj.Object, "spec", "suspend") == true {
		return waiting("is suspended")
	}
	active, _ := number(at(obj.Object, "status", "active"))
	succeeded, _ := number(at(obj.Object, "status", "succeeded"))
	return waiting(fmt.Sprintf("is not complete: %d active, %d succeeded", active, succeeded))
}

func apiService(obj *unstructured.Unstructured) Result {
	available := conditionOf(obj, "Available")
	if available["status"] == "True" {
		return ready()
	}
	return waiting(join("is not available", text(available, "reason"), text(available, "message")))
}

// hint returns additional information about an object that is not ready. For example, it explains why pods are missing
// or why a container does not start.
func hint(obj *unstructured.Unstructured) string {
	if failure := conditionOf(obj, "ReplicaFailure"); failure["status"] == "True" {
		return join("", text(failure, "reason"), text(failure, "message"))
	}
	if obj.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Pod"}) {
		return ""
	}
	for _, item := range list(obj.Object, "status", "containerStatuses") {
		container, _ := item.(map[string]any)
		if reason := text(container, "state", "waiting", "reason"); reason != "" {
			return join("", "container "+text(container, "name"), reason, text(container, "state", "waiting", "message"))
		}
	}
	return ""
}

// conditionOf returns the condition with the given type, or nil if there is none.
func conditionOf(obj *unstructured.Unstructured, kind string) map[string]any {
	for _, item := range list(obj.Object, "status", "conditions") {
		if condition, _ := item.(map[string]any); condition["type"] == kind {
			return condition
		}
	}
	return nil
}

// at returns the value of a field of an object, or nil if there is none. It does not copy the value.
func at(object map[string]any, fields ...string) any {
	var value any = object
	for _, field := range fields {
		fields, _ := value.(map[string]any)
		value = fields[field]
	}
	return value
}

// text returns the value of a string field of an object, or "" if there is none.
func text(object map[string]any, fields ...string) string {
	value, _ := at(object, fields...).(string)
	return value
}

// list returns the value of a list field of an object, or nil if there is none.
func list(object map[string]any, fields ...string) []any {
	value, _ := at(object, fields...).([]any)
	return value
}

// number returns a number as an integer. It returns false if the value is not a number.
func number(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	}
	return 0, false
}

// join joins its arguments with colons. It leaves out empty arguments, except the first.
func join(first string, more ...string) string {
	for _, part := range more {
		if part != "" {
			first += ": " + part
		}
	}
	return first
}
