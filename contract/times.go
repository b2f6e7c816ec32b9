// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// toStoredTime returns t as the API server stores it, in whole seconds.
func toStoredTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// toStoredTimePtr is like toStoredTime, but returns a pointer, for optional fields.
func toStoredTimePtr(t time.Time) *metav1.Time {
	s := toStoredTime(t)
	return &s
}

// notBefore reports whether a is not before b, in whole seconds. It returns true if b is nil or zero, and false if only
// a is nil or zero.
func notBefore(a, b *metav1.Time) bool {
	switch {
	case b.IsZero():
		return true
	case a.IsZero():
		return false
	}
	return !a.Truncate(time.Second).Before(b.Truncate(time.Second))
}

// maxTime returns the later of two times. The second time may be nil.
func maxTime(t time.Time, other *metav1.Time) time.Time {
	if !other.IsZero() && other.After(t) {
		return other.Time
	}
	return t
}
