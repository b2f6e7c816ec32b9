// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClaimBinding describes when a PersistentVolumeClaim is bound to a volume. The values, apart from BindingUnknown, are
// those of the field volumeBindingMode of a StorageClass.
type ClaimBinding string

const (
	// BindingImmediate means that the claim is bound as soon as a volume exists. The claim is ready when it is bound.
	BindingImmediate ClaimBinding = "Immediate"
	// BindingForConsumer means that the claim is bound only when a Pod uses it. The claim is ready before that, because
	// the Pod may wait until the claim is ready.
	BindingForConsumer ClaimBinding = "WaitForFirstConsumer"
	// BindingUnknown means that the StorageClass cannot be read. The claim is ready when it is bound. Until then, the
	// check should be repeated, because the answer may change without a change of the claim.
	BindingUnknown ClaimBinding = "Unknown"
)

// claimRecheckInterval is the time after which a claim is checked again if it is unknown when the claim is bound.
const claimRecheckInterval = 5 * time.Second

var claimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}

// GetClassName returns the name of the StorageClass of a PersistentVolumeClaim. It returns "" if the claim has none.
func GetClassName(claim *unstructured.Unstructured) string {
	if class, given := claim.GetAnnotations()[corev1.BetaStorageClassAnnotation]; given {
		return class
	}
	return getString(claim.Object, "spec", "storageClassName")
}

// isPendingClaim reports whether an object is a PersistentVolumeClaim that was not bound yet.
func isPendingClaim(obj *unstructured.Unstructured) bool {
	if obj.GroupVersionKind().GroupKind() != claimKind {
		return false
	}
	phase := getString(obj.Object, "status", "phase")
	return phase == "" || phase == string(corev1.ClaimPending)
}

// checkPendingClaim returns the result for a claim that was not bound yet.
func (r Rules) checkPendingClaim(claim *unstructured.Unstructured) Result {
	binding := BindingImmediate
	if r.GetBinding != nil {
		binding = r.GetBinding(claim)
	}
	result := checkWithKstatus(claim)
	switch binding {
	case BindingForConsumer:
		return newReady()
	case BindingUnknown:
		result = newWaiting(result.Message + "; its StorageClass cannot be read, which shows whether it is bound before a Pod uses it")
		result.RecheckAfter = claimRecheckInterval
	case BindingImmediate:
	}
	return result
}

func checkClaim(obj *unstructured.Unstructured) Result {
	if getString(obj.Object, "status", "phase") == string(corev1.ClaimLost) {
		return newFailed("its volume is lost")
	}
	return newReady()
}
