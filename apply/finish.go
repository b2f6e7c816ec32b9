// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Finish describes how far an object has come that finishes its work and may then disappear, such as a Job. It belongs
// to the manifest that was written last. As long as the manifest stays the same, the absence of an object whose Finish
// is not empty is no drift, and the object is not created again.
type Finish string

const (
	// FinishExpected means that the object disappears by itself after it has finished.
	FinishExpected Finish = "e"
	// FinishComplete means that the object was seen after it had finished successfully.
	FinishComplete Finish = "c"
	// FinishFailed means that the object was seen after it had failed, and disappears by itself.
	FinishFailed Finish = "f"
	// FinishGone means that the object has finished and is proved not to exist. It is not known to have failed.
	FinishGone Finish = "g"
)

// IsDone reports whether the absence of an object means that it has finished its work. An object that is known to have
// failed has not.
func (f Finish) IsDone() bool { return f != "" && f != FinishFailed }

// sizeOfFinish is the size of Entry.Finish, encoded as JSON, in bytes.
const sizeOfFinish = len(`,"f":"e"`)

// FinishOf returns the Finish of a live object or of a manifest:
//
//   - A Job is complete or has failed according to its conditions. It disappears by itself if it has the field
//     ttlSecondsAfterFinished.
//   - A Pod with the restartPolicy Never or OnFailure is complete in the phase Succeeded.
//   - Any object disappears by itself if it has the annotation ownership.AnnotationDeletesItself.
//
// The result is empty for all other objects. It is also empty for a failed object that does not disappear by itself:
// a user deletes it so that it is created again.
func FinishOf(obj *unstructured.Unstructured) Finish {
	expected := obj.GetAnnotations()[ownership.AnnotationDeletesItself] == "true"
	switch obj.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		_, ttl, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttlSecondsAfterFinished")
		return finishOf(hasCondition(obj, "Complete"), hasCondition(obj, "Failed"), expected || ttl)
	case schema.GroupKind{Kind: "Pod"}:
		policy, _, _ := unstructured.NestedString(obj.Object, "spec", "restartPolicy")
		phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
		ends := policy == "Never" || policy == "OnFailure"
		return finishOf(ends && phase == "Succeeded", ends && phase == "Failed", expected)
	}
	return finishOf(false, false, expected)
}

func finishOf(complete, failed, expected bool) Finish {
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

// mayFinish reports whether objects of a kind can have a Finish without the annotation.
func mayFinish(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Group: "batch", Kind: "Job"} || gk == schema.GroupKind{Kind: "Pod"}
}

func hasCondition(obj *unstructured.Unstructured, conditionType string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, one := range conditions {
		if condition, _ := one.(map[string]any); condition["type"] == conditionType {
			return condition["status"] == "True"
		}
	}
	return false
}

// mayBeFinished reports whether the object is expected to disappear after its work, and was written with the current
// manifest. The inventory of an earlier version does not contain the Finish of an object, so the manifest counts, too.
func (k known) mayBeFinished(r rules) bool {
	return k.Finish != "" && k.UID != "" && k.Hash != "" && k.Hash == k.want.hash && !k.Deleting && !r.Rerun
}

// decideFinishing returns the first step for an object that is expected to disappear after its work.
func decideFinishing(r rules, k known) step {
	isSeen := k.seen != nil && k.seen.UID == k.UID
	switch {
	case k.Finish == FinishGone, isSeen && k.seen.Deleting:
		return step{known: k, count: countUnchanged}
	case !isSeen:
		return k.look(r, decideFinished)
	}
	return decideWanted(r, k)
}

// decideFinished is called after reading an object that no watch has reported and that is expected to disappear after
// its work.
func decideFinished(r rules, k known) step {
	live := k.live
	switch {
	case live == nil && k.absent == absence.Done:
		if k.Finish != FinishFailed {
			k.Finish = FinishGone
		}
		return step{known: k, count: countUnchanged}
	case live == nil || live.GetUID() != k.UID:
		return decideWanted(r, k)
	case live.GetDeletionTimestamp() != nil:
		k.Finish = FinishOf(live)
		return step{known: k, count: countUnchanged}
	case !r.Force && k.Key != "" && k.isLeftAs(ownership.KeyOf(live, r.owner.Manager())):
		return k.unchanged()
	}
	return decideWanted(r, k)
}
