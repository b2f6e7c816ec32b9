// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/absence"
)

func TestSkipUnreadable(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errDenied)
	unproved := &absence.KindError{Kind: schema.GroupKind{Kind: "Secret"}, State: absence.KindForbidden}
	never, always := func(Ref) bool { return false }, func(Ref) bool { return true }
	type result struct {
		Entries        int
		Waits, IsError bool
		Events         []string
	}
	for name, tc := range map[string]struct {
		err    error
		uid    types.UID
		policy Policy
		leave  func(Ref) bool
		want   result
	}{
		"waits for the right to read an object that may not exist":             {err: forbidden, leave: never, want: result{Entries: 1, Waits: true}},
		"waits if the credentials are rejected":                                {err: apierrors.NewUnauthorized("no"), leave: never, want: result{Entries: 1, Waits: true}},
		"ends after the wait if it may not be proved that the kind is gone":    {err: unproved, leave: always, want: result{Events: []string{ReasonMayRemain}}},
		"ends after the wait, with an event":                                   {err: forbidden, leave: always, want: result{Events: []string{ReasonMayRemain}}},
		"ends at once for an object with the policy Keep":                      {err: forbidden, policy: PolicyKeep, leave: never, want: result{}},
		"fails for an object that exists or existed, whatever the caller says": {err: forbidden, uid: "u", leave: always, want: result{Entries: 1, IsError: true}},
		"fails if the cluster does not answer":                                 {err: apierrors.NewTimeoutError("slow", 1), leave: always, want: result{Entries: 1, IsError: true}},
		"fails without a caller that decides":                                  {err: forbidden, want: result{Entries: 1, IsError: true}},
	} {
		t.Run("the deletion "+name+" [F96]", func(t *testing.T) {
			s, got := newApplyServer(), result{}
			s.readErrors["a"] = tc.err
			options := Options{SkipUnreadable: tc.leave, Events: func(e Event) { got.Events = append(got.Events, e.Reason) }}
			entry := Entry{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "a", UID: tc.uid, Policy: tc.policy}
			inv, report, err := New(s, newInstalledMapper(), options).Delete(t.Context(), testOwner, Inventory{Entries: []Entry{entry}}, nil)
			got.Entries, got.Waits, got.IsError = len(inv.Entries), !report.IsDone(), err != nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(err, diff)
			}
			if got.Waits && !strings.Contains(report.Reason(), "Secret shop/a") {
				t.Errorf("the reason does not name the object: %s", report.Reason())
			}
		})
	}
}
