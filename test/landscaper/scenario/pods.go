// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// slow is how long a Pod with the label slow takes to become ready.
const slow = 2 * time.Second

// IsReady reports whether a Pod of a scenario may become ready: one with the label unready never, one with
// the label slow after two seconds. It is made for [envtest.AddKubelet].
func IsReady(pod *corev1.Pod) bool {
	if _, ok := pod.Labels["unready"]; ok {
		return false
	}
	_, ok := pod.Labels["slow"]
	return !ok || time.Since(pod.CreationTimestamp.Time) >= slow
}
