// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stamp is a time as the API server stores it: whole seconds.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// stampRef is stamp for optional fields.
func stampRef(t time.Time) *metav1.Time {
	s := stamp(t)
	return &s
}

// notBefore reports a >= b in whole seconds; a missing a is before everything, a missing b is never after.
func notBefore(a, b *metav1.Time) bool {
	switch {
	case b.IsZero():
		return true
	case a.IsZero():
		return false
	}
	return !a.Truncate(time.Second).Before(b.Truncate(time.Second))
}

// later is the later of a time and an optional one.
func later(t time.Time, other *metav1.Time) time.Time {
	if !other.IsZero() && other.After(t) {
		return other.Time
	}
	return t
}
