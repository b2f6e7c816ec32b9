// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

// FuzzGuards passes two arbitrary statuses to every function of the package. No function may panic. Only the second
// status may be changed. A second call of ResetProtected or LimitSize must change nothing.
func FuzzGuards(f *testing.F) {
	for _, status := range []*lsv1alpha1.DeployItemStatus{newStartedStatus(), newChangedStatus(), newLargeStatus(3, 50)} {
		body, err := json.Marshal(status)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, []byte(`{"phase":"Init","lastErrors":[null],"transitionTimes":{},"conditions":[{}]}`))
		f.Add([]byte(`{"jobID":"1","conditions":[{"type":"Paused"},{"type":"Waiting"}]}`), body)
	}
	f.Add([]byte(`{"conditions":[`+strings.Repeat(`{"type":"a"},`, 1_500)+`{"type":"Deployed"}]}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		var b, a lsv1alpha1.DeployItemStatus
		if json.Unmarshal(before, &b) != nil || json.Unmarshal(after, &a) != nil {
			return
		}
		was := b.DeepCopy()
		ChangedProtectedField(&lsv1alpha1.DeployItem{Status: b}, &lsv1alpha1.DeployItem{Status: a})
		CopyOutcome(&b, &a, contract.Decision{})
		ResetProtected(&b, &a)
		protected := a.DeepCopy()
		ResetProtected(&b, &a)
		if diff := cmp.Diff(protected, &a); diff != "" {
			t.Fatalf("protected again: %s", diff)
		}
		LimitSize(&a)
		checkSize(t, &a)
		if diff := cmp.Diff(was, &b); diff != "" {
			t.Fatalf("the first status was changed: %s", diff)
		}
	})
}

// checkSize requires that texts are small, and that Bound is idempotent.
func checkSize(t *testing.T, s *lsv1alpha1.DeployItemStatus) {
	t.Helper()
	body, err := json.Marshal([]any{s.LastError, s.FirstError, s.LastErrors, s.Conditions})
	if err != nil || len(body) > maxTextSize+64 {
		t.Fatalf("errors and conditions take %d bytes, %v", len(body), err)
	}
	again := s.DeepCopy()
	LimitSize(again)
	if diff := cmp.Diff(s, again); diff != "" {
		t.Fatalf("bound again: %s", diff)
	}
}
