// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// delays contains the times after which Pods with certain labels become ready.
var delays = map[string]time.Duration{"slow": 2 * time.Second, "later": 8 * time.Second, "unready": 24 * time.Hour}

// IsReady reports whether a Pod of a scenario may become ready. A Pod with the label unready never becomes ready.
// Other Pods become ready after the delay of their label, or immediately if they have no such label. Pass IsReady
// to [controlplane.AddKubelet].
func IsReady(pod *corev1.Pod) bool {
	age := time.Since(pod.CreationTimestamp.Time)
	for label, delay := range delays {
		if _, ok := pod.Labels[label]; ok && age < delay {
			return false
		}
	}
	return true
}
