// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

func lastErr(operation, message string, since, updated int) *lsv1alpha1.Error {
	return &lsv1alpha1.Error{Operation: operation, Reason: "R", Message: message, LastTransitionTime: metaAfterMinutes(since), LastUpdateTime: metaAfterMinutes(updated)}
}

func TestRecordError(t *testing.T) {
	t.Parallel()
	var s lsv1alpha1.DeployItemStatus
	contract.RecordError(&s, contract.RevisionJobID, lastErr("A", "one", 0, 0), afterMinutes(0))
	contract.RecordError(&s, contract.RevisionJobID, lastErr("A", "two", 1, 1), afterMinutes(1))
	if diff := cmp.Diff(lastErr("A", "two", 0, 1), s.LastError); diff != "" {
		t.Errorf("same operation keeps lastTransitionTime: %s", diff)
	}
	contract.RecordError(&s, contract.RevisionJobID, lastErr("B", "two", 2, 2), afterMinutes(2))
	if diff := cmp.Diff(lastErr("B", "two", 2, 2), s.LastError); diff != "" {
		t.Errorf("another operation must change lastTransitionTime: %s", diff)
	}
	before := s.DeepCopy()
	contract.RecordError(&s, contract.RevisionJobID, lastErr("B", "two", 9, 9), afterMinutes(9))
	if diff := cmp.Diff(before, &s); diff != "" {
		t.Errorf("the same content twice changes nothing: %s", diff)
	}
	contract.RecordError(&s, contract.RevisionJobID, nil, afterMinutes(10))
	if s.LastError != nil || len(s.LastErrors) != 3 || s.FirstError.Message != "one" {
		t.Errorf("nil clears lastError and keeps the history: %+v", s)
	}
	contract.RecordError(&s, contract.RevisionJobID, lastErr("B", "two", 11, 11), afterMinutes(11))
	if len(s.LastErrors) != 3 {
		t.Errorf("the same error must not be added to the history again, got %d errors", len(s.LastErrors))
	}
	contract.RecordError(nil, contract.RevisionJobID, nil, afterMinutes(0))
}

func TestRecordErrorHistory(t *testing.T) {
	t.Parallel()
	s := lsv1alpha1.DeployItemStatus{LastErrors: []*lsv1alpha1.Error{nil}}
	for i := range 8 {
		contract.RecordError(&s, contract.RevisionJobID, lastErr("A", fmt.Sprint(i), 0, 0), afterMinutes(i))
	}
	var got []string
	for _, e := range s.LastErrors {
		got = append(got, e.Message)
	}
	if diff := cmp.Diff([]string{"3", "4", "5", "6", "7"}, got); diff != "" || s.FirstError.Message != "0" {
		t.Errorf("newest five, first once: %s %+v", diff, s.FirstError)
	}
}

// TestRecordErrorWithoutHistory checks that the error history is not written under the annotation revision, because the
// CRDs of old Landscaper versions prune the history.
func TestRecordErrorWithoutHistory(t *testing.T) {
	t.Parallel()
	var s lsv1alpha1.DeployItemStatus
	contract.RecordError(&s, contract.RevisionAnnotation, lastErr("A", "one", 0, 0), afterMinutes(0))
	if s.LastError == nil || s.FirstError != nil || s.LastErrors != nil {
		t.Errorf("status = %+v, want only lastError", s)
	}
}

func TestRecordErrorCopies(t *testing.T) {
	t.Parallel()
	var s lsv1alpha1.DeployItemStatus
	e := lastErr("A", "one", 0, 0)
	contract.RecordError(&s, contract.RevisionJobID, e, afterMinutes(0))
	e.Message = "changed"
	s.LastError.Message = "changed too"
	if s.FirstError.Message != "one" || s.LastErrors[0].Message != "one" {
		t.Error("the history shares memory")
	}
}

// TestRecordErrorDoesNotChangeItsArgument checks that the caller's error is not changed.
func TestRecordErrorDoesNotChangeItsArgument(t *testing.T) {
	t.Parallel()
	e := lastErr("A", "one", 0, 0)
	e.Codes = errorCodes{"X"}
	before := e.DeepCopy()
	var s lsv1alpha1.DeployItemStatus
	contract.RecordError(&s, contract.RevisionJobID, e, afterMinutes(5))
	if diff := cmp.Diff(before, e); diff != "" {
		t.Errorf("the times of the caller's error changed: %s", diff)
	}
	e.Message, e.Codes[0] = "another", "Y"
	for where, got := range map[string]*lsv1alpha1.Error{"lastError": s.LastError, "firstError": s.FirstError, "lastErrors": s.LastErrors[0]} {
		if got.Message != "one" || got.Codes[0] != "X" {
			t.Errorf("the error %s changed together with the caller's error: %+v", where, got)
		}
	}
}
