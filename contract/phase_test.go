// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	"github.com/deployerkit/deployerkit/contract"
)

func TestPhases(t *testing.T) {
	t.Parallel()
	for _, p := range allPhases {
		if got := contract.IsFinal(p); got != isDone(p) {
			t.Errorf("IsFinal(%q) = %t", p, got)
		}
	}
}

func TestInitialAndFailedPhase(t *testing.T) {
	t.Parallel()
	for _, a := range []contract.Action{contract.ActionAbort, contract.ActionForceReconcile, contract.ActionDelete, contract.ActionReconcile, contract.ActionNone} {
		want := phInit
		if a == contract.ActionDelete {
			want = phInitDelete
		}
		if got := contract.InitialPhase(contract.RevisionJobID, a); got != want {
			t.Errorf("InitialPhase(job ID, %s) = %s, want %s", a, got, want)
		}
		if got := contract.InitialPhase(contract.RevisionAnnotation, a); got != phInit {
			t.Errorf("InitialPhase(annotation, %s) = %s", a, got)
		}
	}
	for _, tc := range []struct {
		r        contract.Revision
		deleting bool
		want     phase
	}{
		{contract.RevisionAnnotation, false, phFailed},
		{contract.RevisionAnnotation, true, phFailed},
		{contract.RevisionJobID, false, phFailed},
		{contract.RevisionJobID, true, phDeleteFailed},
	} {
		if got := contract.FailedPhase(tc.r, tc.deleting); got != tc.want {
			t.Errorf("FailedPhase(%s, %t) = %s, want %s", tc.r, tc.deleting, got, tc.want)
		}
	}
}
