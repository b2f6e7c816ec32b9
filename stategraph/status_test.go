// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
)

func TestFormatSummary(t *testing.T) {
	many := []ComponentStatus{}
	for i := range 7 {
		many = append(many, ComponentStatus{Name: fmt.Sprint("c", i), State: StateFailed, Reason: "no"})
	}
	for name, test := range map[string]struct {
		states []ComponentStatus
		want   string
	}{
		"all components are ready": {[]ComponentStatus{{Name: "a", State: StateReady}}, ""},
		"blocked components name the components that block them [Yx9]": {[]ComponentStatus{
			{Name: "service", State: StateReady},
			{Name: "database", State: StateProgressing, Reason: "StatefulSet.apps db/galera: Ready: 1/3"},
			{Name: "haproxy", State: StateBlocked, BlockedBy: []string{"database"}},
			{Name: "public", State: StateBlocked, BlockedBy: []string{"database", "certificate"}},
			{Name: "certificate", State: StateFailed, Reason: "no issuer"},
		}, "haproxy, public blocked by database: StatefulSet.apps db/galera: Ready: 1/3; public blocked by certificate: no issuer"},
		"many components are shortened": {many, "c0: no; c1: no; c2: no; c3: no; c4: no; and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, formatSummary(test.states)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestJoinErrors(t *testing.T) {
	done := External(ExternalSpec{Reconcile: func(context.Context) error { return nil }})
	g, err := NewBuilder().Add("a", done).Add("b", done).Build()
	if err != nil {
		t.Fatal(err)
	}
	job := fmt.Errorf("Job.batch a/b: %w", &target.ObjectError{Reason: "has failed: BackoffLimitExceeded", Final: true})
	rollout := &target.ObjectError{Reason: "Progress deadline exceeded"}
	conflict := &apply.Error{Message: "was changed", Class: apply.ClassRetry, StatusReason: metav1.StatusReasonConflict}
	permanent := &apply.Error{Message: "is invalid", Class: apply.ClassPermanent}
	coded := deployerlib.NewConfigError("spec.config", "wrong")
	for name, test := range map[string]struct {
		walked  walkResult
		is      error // the error that the result must contain
		isNot   error
		ends    bool // the error must end the job
		waits   bool // the item must be Progressing
		removal error
	}{
		"a failed Job ends the job of the item [F38]":                                              {walked: walkResult{errs: map[int]error{0: job}, states: []ComponentStatus{{State: StateFailed}, {State: StateReady}}}, ends: true},
		"a failed Job does not end the job of the item while other components make progress [F38]": {walked: walkResult{errs: map[int]error{0: job}, states: []ComponentStatus{{State: StateFailed}, {State: StateProgressing}}}, waits: true},
		"a failure that may recover does not end the job [F38]":                                    {walked: walkResult{errs: map[int]error{0: rollout}, states: []ComponentStatus{{State: StateFailed}, {State: StateReady}}}},
		"an error code ends the job if no component makes progress [Yx8]":                          {walked: walkResult{errs: map[int]error{0: coded}, states: []ComponentStatus{{State: StateFailed}, {State: StateReady}}}, is: coded},
		"an error code does not end the job while other components make progress [Yx8]":            {walked: walkResult{errs: map[int]error{0: coded}, states: []ComponentStatus{{State: StateFailed}, {State: StateProgressing}}}, isNot: coded, waits: true},
		"an error code does not end the job while another error is transient [F38] [Yx8]":          {walked: walkResult{errs: map[int]error{0: coded, 1: conflict}, states: []ComponentStatus{{State: StateFailed}, {State: StateFailed}}}, isNot: coded, waits: true},
		"a failed Job does not end the job while another error is transient [F38]":                 {walked: walkResult{errs: map[int]error{0: conflict, 1: job}, states: []ComponentStatus{{State: StateFailed}, {State: StateFailed}}}, waits: true},
		"a transient error of the removal does not end the job [F38]":                              {walked: walkResult{errs: map[int]error{0: coded}, states: []ComponentStatus{{State: StateFailed}, {State: StateReady}}}, removal: conflict, isNot: coded, waits: true},
		"only the removal fails [F38]":                                                             {walked: walkResult{states: []ComponentStatus{{State: StateReady}, {State: StateReady}}}, removal: permanent, ends: true},
		"the removal fails beside progress [F38]":                                                  {walked: walkResult{states: []ComponentStatus{{State: StateProgressing}, {State: StateReady}}}, removal: permanent, waits: true},
		"an error code ends the job beside a failure that may recover":                             {walked: walkResult{errs: map[int]error{0: coded, 1: rollout}, states: []ComponentStatus{{State: StateFailed}, {State: StateFailed}}}, is: coded},
		"two permanent errors end the job [F38] [Yx8]":                                             {walked: walkResult{errs: map[int]error{0: coded, 1: job}, states: []ComponentStatus{{State: StateFailed}, {State: StateFailed}}}, is: coded, ends: true},
		"a superseded job always ends":                                                             {walked: walkResult{errs: map[int]error{0: fmt.Errorf("store: %w", deployerlib.ErrSuperseded)}, states: []ComponentStatus{{State: StateFailed}, {State: StateProgressing}}}, is: deployerlib.ErrSuperseded, waits: true},
		"a walk that was stopped only returns the reason":                                          {walked: walkResult{ended: deployerlib.ErrShutdown, states: []ComponentStatus{{}, {}}}, is: deployerlib.ErrShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			test.walked.graph = g
			c := &call{deployer: &deployer{graph: g}, run: &managed.Run{}}
			got, moving := c.joinErrors(&test.walked, test.removal)
			if got == nil {
				t.Fatal("no error")
			}
			if moving != test.waits {
				t.Errorf("moving %t, want %t", moving, test.waits)
			}
			if lsError := contract.NewError(got, "", "", time.Time{}); contract.HasUnrecoverableCode(lsError.Codes) != (test.ends || test.is == coded) { //nolint:errorlint // which one the table names
				t.Errorf("codes %v, want the end of the job: %t", lsError.Codes, test.ends)
			}
			if test.is != nil && !errors.Is(got, test.is) {
				t.Errorf("%v is lost: %v", test.is, got)
			}
			if test.isNot != nil && errors.Is(got, test.isNot) {
				t.Errorf("%v ends the job", got)
			}
		})
	}
}

func TestProviderStatusUndo(t *testing.T) {
	s := &ProviderStatus{}
	f := finalizers{s}
	if !f.AddFinalizer(unit{Component: "b"}) || !f.AddFinalizer(unit{Component: "a", Requires: []string{"b"}}) {
		t.Error("a new component grows the status")
	}
	if f.AddFinalizer(unit{Component: "b", Requires: []string{"c"}}) {
		t.Error("a known component does not")
	}
	want := []UndoEntry{{Name: "a", Requires: []string{"b"}}, {Name: "b", Requires: []string{"c"}}}
	if diff := cmp.Diff(want, s.Undo); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	f.RemoveFinalizer("a")
	f.RemoveFinalizer("unknown")
	if diff := cmp.Diff(want[1:], s.Undo); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestProviderStatusStored(t *testing.T) {
	s := &ProviderStatus{Undo: []UndoEntry{{Name: "a"}}, Inventory: apply.Inventory{Entries: []apply.Entry{{APIVersion: "v1", Kind: "Secret", Name: "x"}}}}
	s.SetGroupVersionKind(StatusGVK)
	di := newItem("one")
	if err := s.store(di); err != nil {
		t.Fatal(err)
	}
	got, err := decodeStatus(di)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, raw := range map[string]string{
		"the status of another deployer": `{"apiVersion":"other/v1","kind":"Status"}`,
		"a status that is not an object": `[]`,
	} {
		di.Status.ProviderStatus.Raw = []byte(raw)
		if _, err := decodeStatus(di); err == nil {
			t.Errorf("a status that is %s is accepted: what it knows would be lost", name)
		}
	}
}
