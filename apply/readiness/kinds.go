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
	{Group: "", Kind: "Service"}:  checkService,
	{Group: "", Kind: "Pod"}:      checkPod,
	claimKind:                     checkClaim,
	{Group: "batch", Kind: "Job"}: checkJob,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: checkAPIService,
}

// observingKinds contains the built-in kinds whose controllers always set status.observedGeneration.
var observingKinds = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:            true,
	{Group: "apps", Kind: "StatefulSet"}:           true,
	{Group: "apps", Kind: "DaemonSet"}:             true,
	{Group: "apps", Kind: "ReplicaSet"}:            true,
	{Kind: "ReplicationController"}:                true,
	{Group: "policy", Kind: "PodDisruptionBudget"}: true,
}

// toKnownForm converts an object into a form for which kstatus has suitable rules. It turns a ReplicationController
// into a ReplicaSet. It replaces the update strategy OnDelete of a StatefulSet by a rolling update whose partition
// excludes all pods from the update.
func toKnownForm(obj *unstructured.Unstructured) *unstructured.Unstructured {
	switch obj.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "ReplicationController"}:
		known := maps.Clone(obj.Object)
		known["apiVersion"], known["kind"] = "apps/v1", "ReplicaSet"
		return &unstructured.Unstructured{Object: known}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		spec, _ := obj.Object["spec"].(map[string]any)
		if getString(spec, "updateStrategy", "type") != "OnDelete" {
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

func checkService(obj *unstructured.Unstructured) Result {
	if getString(obj.Object, "spec", "type") != "LoadBalancer" {
		return newReady()
	}
	if len(getList(obj.Object, "status", "loadBalancer", "ingress")) == 0 {
		return newWaiting("the load balancer has no address yet")
	}
	return newReady()
}

func checkPod(obj *unstructured.Unstructured) Result {
	if getString(obj.Object, "status", "phase") != "Failed" {
		return newReady()
	}
	return newFailed(joinParts("has failed", getString(obj.Object, "status", "reason"), getString(obj.Object, "status", "message")))
}

func checkJob(obj *unstructured.Unstructured) Result {
	if failure := findCondition(obj, "Failed"); failure["status"] == "True" {
		return newFailed(joinParts("has failed", getString(failure, "reason"), getString(failure, "message")))
	}
	if findCondition(obj, "Complete")["status"] == "True" {
		return newReady()
	}
	if getField(obj.Object, "spec", "suspend") == true {
		return newWaiting("is suspended")
	}
	active, _ := toNumber(getField(obj.Object, "status", "active"))
	succeeded, _ := toNumber(getField(obj.Object, "status", "succeeded"))
	return newWaiting(fmt.Sprintf("is not complete: %d active, %d succeeded", active, succeeded))
}

func checkAPIService(obj *unstructured.Unstructured) Result {
	available := findCondition(obj, "Available")
	if available["status"] == "True" {
		return newReady()
	}
	return newWaiting(joinParts("is not available", getString(available, "reason"), getString(available, "message")))
}

// getHint returns additional information about an object that is not ready. For example, it explains why pods are
// missing or why a container does not start.
func getHint(obj *unstructured.Unstructured) string {
	if failure := findCondition(obj, "ReplicaFailure"); failure["status"] == "True" {
		return joinParts("", getString(failure, "reason"), getString(failure, "message"))
	}
	if obj.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Pod"}) {
		return ""
	}
	for _, item := range getList(obj.Object, "status", "containerStatuses") {
		container, _ := item.(map[string]any)
		if reason := getString(container, "state", "waiting", "reason"); reason != "" {
			return joinParts("", "container "+getString(container, "name"), reason, getString(container, "state", "waiting", "message"))
		}
	}
	return ""
}

// findCondition returns the condition with the given type, or nil if there is none.
func findCondition(obj *unstructured.Unstructured, kind string) map[string]any {
	for _, item := range getList(obj.Object, "status", "conditions") {
		if condition, _ := item.(map[string]any); condition["type"] == kind {
			return condition
		}
	}
	return nil
}

// getField returns the value of a field of an object, or nil if there is none. It does not copy the value.
func getField(object map[string]any, fields ...string) any {
	var value any = object
	for _, field := range fields {
		fields, _ := value.(map[string]any)
		value = fields[field]
	}
	return value
}

// getString returns the value of a string field of an object, or "" if there is none.
func getString(object map[string]any, fields ...string) string {
	value, _ := getField(object, fields...).(string)
	return value
}

// getList returns the value of a list field of an object, or nil if there is none.
func getList(object map[string]any, fields ...string) []any {
	value, _ := getField(object, fields...).([]any)
	return value
}

// toNumber returns a number as an integer. It returns false if the value is not a number.
func toNumber(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	}
	return 0, false
}

// joinParts joins its arguments with colons. It leaves out empty arguments, except the first.
func joinParts(first string, more ...string) string {
	for _, part := range more {
		if part != "" {
			first += ": " + part
		}
	}
	return first
}
