// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/google/go-cmp/cmp"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/deployerkit/deployerkit/contract"
)

// cyclicError is an error that wraps itself.
type cyclicError struct{}

func (c *cyclicError) Error() string { return "cyclic" }
func (c *cyclicError) Unwrap() error { return c }

type errorCodes = []lsv1alpha1.ErrorCode

func TestErrorCodes(t *testing.T) {
	t.Parallel()
	a := lserrors.NewError("o", "r", "m", "A")
	wrapped := lserrors.NewWrappedError(fmt.Errorf("x: %w", a), "o", "r", "m", "B", "A")
	for name, tc := range map[string]struct {
		err  error
		want errorCodes
	}{
		"nil":                 {nil, nil},
		"error without codes": {errBoom, nil},
		"plain":               {a, errorCodes{"A"}},
		"nested errors, the outer one first and each code once": {wrapped, errorCodes{"B", "A"}},
		"wrapped":             {fmt.Errorf("y: %w", a), errorCodes{"A"}},
		"joined [H-15]":       {errors.Join(errBoom, fmt.Errorf("%w", wrapped)), errorCodes{"B", "A"}},
		"two verbs %w [H-15]": {fmt.Errorf("%w and %w", errBoom, a), errorCodes{"A"}},
		"aggregate [H-15]":    {utilerrors.NewAggregate([]error{errBoom, utilerrors.NewAggregate([]error{a})}), errorCodes{"A"}},
		"fault":               {fmt.Errorf("z: %w", &contract.CodedError{Codes: errorCodes{"F"}, Err: a}), errorCodes{"F", "A"}},
		"nil pointer":         {(*lserrors.Error)(nil), nil},
		"joined nil pointer":  {errors.Join((*lserrors.Error)(nil), a), errorCodes{"A"}},
		"cyclic":              {&cyclicError{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, contract.ErrorCodes(tc.err)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestHasUnrecoverableCode(t *testing.T) {
	t.Parallel()
	for _, c := range lsv1alpha1.UnrecoverableErrorCodes {
		if !contract.HasUnrecoverableCode(errorCodes{"A", c}) {
			t.Errorf("%s is unrecoverable", c)
		}
	}
	if contract.HasUnrecoverableCode(nil) || contract.HasUnrecoverableCode(errorCodes{"A", lsv1alpha1.ErrorWebhook}) {
		t.Error("recoverable codes")
	}
}

func TestNewError(t *testing.T) {
	t.Parallel()
	ls := lserrors.NewWrappedError(errBoom, "Apply", "Denied", "apply x", "A")
	for name, tc := range map[string]struct {
		err  error
		want lsv1alpha1.Error
	}{
		"error without codes": {errBoom, lsv1alpha1.Error{Operation: "op", Reason: "reason", Message: "boom"}},
		"error of Landscaper": {ls, lsv1alpha1.Error{Operation: "Apply", Reason: "Denied", Message: "apply x: boom", Codes: errorCodes{"A"}}},
		"wrapped error of Landscaper keeps the outer text [H-32]": {fmt.Errorf("outer: %w", ls), lsv1alpha1.Error{Operation: "Apply", Reason: "Denied", Message: "outer: apply x: boom", Codes: errorCodes{"A"}}},
		"joined [H-15]": {errors.Join(errBoom, ls), lsv1alpha1.Error{Operation: "Apply", Reason: "Denied", Message: "boom; apply x: boom", Codes: errorCodes{"A"}}},
		"nested errors of Landscaper have the reason of the outer one": {lserrors.NewWrappedError(ls, "Outer", "Why", "all", "B"), lsv1alpha1.Error{Operation: "Outer", Reason: "Why", Message: "all: apply x: boom", Codes: errorCodes{"B", "A"}}},
		"fault without reason":            {&contract.CodedError{Message: "f", Err: errBoom}, lsv1alpha1.Error{Operation: "op", Reason: "reason", Message: "f: boom"}},
		"fault without message":           {&contract.CodedError{Reason: "F", Err: errBoom}, lsv1alpha1.Error{Operation: "op", Reason: "F", Message: "boom"}},
		"nil pointer":                     {(*lserrors.Error)(nil), lsv1alpha1.Error{Operation: "op", Reason: "reason", Message: "nil *errors.Error returned as an error"}},
		"invalid UTF-8 and several lines": {errors.New("a\xffb\r\n\tc"), lsv1alpha1.Error{Operation: "op", Reason: "reason", Message: "a\uFFFDb; c"}},
		"percent signs are kept [H-38]":   {errors.New("100%d"), lsv1alpha1.Error{Operation: "op", Reason: "reason", Message: "100%d"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.want.LastTransitionTime, tc.want.LastUpdateTime = metaAfterMinutes(0), metaAfterMinutes(0)
			if diff := cmp.Diff(&tc.want, contract.NewError(tc.err, "op", "reason", epoch.Add(5e8))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	if contract.NewError(nil, "o", "r", epoch) != nil {
		t.Error("nil in, nil out")
	}
}

func TestNewErrorLimitsLength(t *testing.T) {
	t.Parallel()
	e := contract.NewError(errors.New(strings.Repeat("ä", 4000)), strings.Repeat("o", 500), strings.Repeat("r", 500), epoch)
	if len(e.Message) > 1024 || !utf8.ValidString(e.Message) || !strings.HasSuffix(e.Message, "bytes cut)") {
		t.Errorf("message of %d bytes: …%s", len(e.Message), e.Message[len(e.Message)-40:])
	}
	if len(e.Operation) > 128 || len(e.Reason) > 128 {
		t.Errorf("operation %d, reason %d bytes", len(e.Operation), len(e.Reason))
	}
}

// TestErrorCodesDoesNotChangeTheError checks that Codes does not change its argument, even if the argument consists of
// joined errors.
func TestErrorCodesDoesNotChangeTheError(t *testing.T) {
	t.Parallel()
	joined := errors.Join(errors.New("first"), errors.New("second"), lserrors.NewError("o", "r", "third", "A"))
	before := joined.Error()
	for range 3 {
		contract.ErrorCodes(joined)
		if after := joined.Error(); after != before {
			t.Fatalf("%q became %q", before, after)
		}
	}
}
