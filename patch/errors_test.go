// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/patch"
)

func answer(code int32, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: text}}
}

var sizeErrors = map[string]error{
	"etcd":      answer(500, "etcdserver: request is too large"),
	"grpc":      answer(500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097500 vs. 2097152)"),
	"limit":     answer(413, "limit is 3145728"),
	"by reason": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
	"wrapped":   fmt.Errorf("patch status: %w", answer(500, "etcdserver: request is too large")),
}

func TestPermanent(t *testing.T) {
	for name, err := range sizeErrors {
		t.Run(name, func(t *testing.T) {
			if !patch.Permanent(err) {
				t.Errorf("Permanent(%v) = false, want true", err)
			}
		})
	}
	others := map[string]error{
		"nil":             nil,
		"plain":           errors.New("request is too large"),
		"conflict":        answer(409, "request is too large"),
		"other 500":       answer(500, "etcdserver: leader changed"),
		"other exhausted": answer(500, "rpc error: code = ResourceExhausted desc = etcdserver: too many requests"),
		"field":           &patch.FieldError{Path: "spec"},
	}
	for name, err := range others {
		t.Run("not "+name, func(t *testing.T) {
			if patch.Permanent(err) {
				t.Errorf("Permanent(%v) = true, want false", err)
			}
		})
	}
}
