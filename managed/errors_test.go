// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/targets"
)

// TestIsTransient covers the errors that let the job of an item go on although another component has failed for good.
func TestIsTransient(t *testing.T) {
	group := schema.GroupResource{Resource: "configmaps"}
	invalid := &apply.Error{Class: apply.ClassPermanent, StatusReason: metav1.StatusReasonInvalid}
	conflict := &apply.Error{Class: apply.ClassRetry, StatusReason: metav1.StatusReasonConflict}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"conflict of a write [F38]":   {conflict, true},
		"missing right [F38]":         {&apply.Error{Class: apply.ClassRetry, StatusReason: metav1.StatusReasonForbidden}, false},
		"invalid object [F38]":        {invalid, false},
		"second of two objects [F38]": {apply.Errors{invalid, conflict}, true},
		"read while overloaded":       {fmt.Errorf("read: %w", apierrors.NewTooManyRequests("slow down", 1)), true},
		"read without the right":      {fmt.Errorf("read: %w", apierrors.NewForbidden(group, "a", nil)), false},
		"outdated response":           {fmt.Errorf("read: %w", errLags), true},
		"target that is down":         {fmt.Errorf("read: %w", &targets.UnreachableError{RetryAfter: time.Second}), true},
		"no connection":               {fmt.Errorf("read: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		"error of a body [F38]":       {errors.New("no entry"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsTransient(test.err); got != test.want {
				t.Errorf("IsTransient(%v) = %t", test.err, got)
			}
		})
	}
}

// TestIsUnauthorized covers the errors after which the credentials of a target are read again. The error of a read is
// covered by TestReadRecognizesRejectedCredentials.
func TestIsUnauthorized(t *testing.T) {
	conflict := &apply.Error{Class: apply.ClassRetry, StatusReason: metav1.StatusReasonConflict}
	refused := &apply.Error{Class: apply.ClassRetry, StatusReason: metav1.StatusReasonUnauthorized}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"one object [H-15]":                {fmt.Errorf("component a: %w", refused), true},
		"second of two objects [H-15]":     {fmt.Errorf("component a: %w", apply.Errors{conflict, refused}), true},
		"another error [H-15]":             {apply.Errors{conflict}, false},
		"client of another cluster [H-15]": {apierrors.NewUnauthorized("Unauthorized"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsUnauthorized(test.err); got != test.want {
				t.Errorf("IsUnauthorized(%v) = %t", test.err, got)
			}
		})
	}
}
