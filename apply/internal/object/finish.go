// SPDX-License-Identifier: Apache-2.0

package object

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Finish describes how far an object has come that finishes its work and may then disappear, such as a Job.
type Finish string

// These constants are the values of Finish. Package apply documents them.
const (
	FinishExpected Finish = "e"
	FinishComplete Finish = "c"
	FinishFailed   Finish = "f"
	FinishGone     Finish = "g"
)

// IsDone reports whether the absence of an object means that it has finished its work. An object that is known to have
// failed has not.
func (f Finish) IsDone() bool { return f != "" && f != FinishFailed }

// GetFinish returns the Finish of a live object or of a manifest. See apply.GetFinish.
func GetFinish(obj *unstructured.Unstructured) Finish {
	expected := obj.GetAnnotations()[ownership.AnnotationDeletesItself] == "true"
	switch obj.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		_, ttl, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttlSecondsAfterFinished")
		return selectFinish(HasCondition(obj, "Complete"), HasCondition(obj, "Failed"), expected || ttl)
	case schema.GroupKind{Kind: "Pod"}:
		policy, _, _ := unstructured.NestedString(obj.Object, "spec", "restartPolicy")
		phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
		ends := policy == "Never" || policy == "OnFailure"
		return selectFinish(ends && phase == "Succeeded", ends && phase == "Failed", expected)
	}
	return selectFinish(false, false, expected)
}

func selectFinish(complete, failed, expected bool) Finish {
	switch {
	case complete:
		return FinishComplete
	case failed && expected:
		return FinishFailed
	case expected:
		return FinishExpected
	}
	return ""
}

// HasCondition reports whether a condition of an object has the status True.
func HasCondition(obj *unstructured.Unstructured, conditionType string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, one := range conditions {
		if condition, _ := one.(map[string]any); condition["type"] == conditionType {
			return condition["status"] == "True"
		}
	}
	return false
}
