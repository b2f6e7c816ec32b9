// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/internal/object"
)

// Finish describes how far an object has come that finishes its work and may then disappear, such as a Job. It belongs
// to the manifest that was written last. As long as the manifest stays the same, the absence of an object whose Finish
// is not empty is no drift, and the object is not created again. Its method IsDone reports whether the absence of an
// object means that it has finished its work.
type Finish = object.Finish

const (
	// FinishExpected means that the object disappears by itself after it has finished.
	FinishExpected = object.FinishExpected
	// FinishComplete means that the object was seen after it had finished successfully.
	FinishComplete = object.FinishComplete
	// FinishFailed means that the object was seen after it had failed, and disappears by itself.
	FinishFailed = object.FinishFailed
	// FinishGone means that the object has finished and is proved not to exist. It is not known to have failed.
	FinishGone = object.FinishGone
)

// sizeOfFinish is the size of Entry.Finish, encoded as JSON, in bytes.
const sizeOfFinish = len(`,"f":"e"`)

// GetFinish returns the Finish of a live object or of a manifest:
//
//   - A Job is complete or has failed according to its conditions. It disappears by itself if it has the field
//     ttlSecondsAfterFinished.
//   - A Pod with the restartPolicy Never or OnFailure is complete in the phase Succeeded.
//   - Any object disappears by itself if it has the annotation ownership.AnnotationDeletesItself.
//
// The result is empty for all other objects. It is also empty for a failed object that does not disappear by itself:
// a user deletes it so that it is created again.
func GetFinish(obj *unstructured.Unstructured) Finish { return object.GetFinish(obj) }

// canFinish reports whether objects of a kind can have a Finish without the annotation.
func canFinish(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Group: "batch", Kind: "Job"} || gk == schema.GroupKind{Kind: "Pod"}
}
