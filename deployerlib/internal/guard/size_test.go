// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

func getTextSize(t *testing.T, s *lsv1alpha1.DeployItemStatus) int {
	t.Helper()
	total := 0
	for _, v := range []any{s.LastError, s.FirstError, s.LastErrors, s.Conditions} {
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		total += len(body)
	}
	return total
}

// newLargeStatus returns a status with n conditions, each of the given size in bytes. The status also contains too many
// errors, and errors that are too large.
func newLargeStatus(n, size int) *lsv1alpha1.DeployItemStatus {
	s := &lsv1alpha1.DeployItemStatus{Conditions: []lsv1alpha1.Condition{newCondition(contract.ConditionBackground, "True", -1)}}
	s.ProviderStatus = toRaw(`{"x":"` + strings.Repeat("p", 200_000) + `"}`)
	long := newError(strings.Repeat("o", 9999), strings.Repeat("\x01<>\n", 50_000), 0, 0)
	for i := range 100 {
		long.Codes = append(long.Codes, lsv1alpha1.ErrorCode(strings.Repeat("c", i*50)))
	}
	s.LastError, s.FirstError = long.DeepCopy(), long.DeepCopy()
	for range 20 {
		s.LastErrors = append(s.LastErrors, long.DeepCopy())
	}
	for i := range n {
		c := newCondition(lsv1alpha1.ConditionType(fmt.Sprintf("C%d", i)), "True", -1)
		c.Message = strings.Repeat("<", size) + "\xff"
		s.Conditions = append(s.Conditions, c)
	}
	s.Conditions = append(s.Conditions, newCondition(contract.ConditionDeployed, "False", -2))
	return s
}

func TestLimitSize(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ n, size int }{
		"nothing":               {0, 0},
		"some long values":      {3, 100_000},
		"many":                  {200, 5_000},
		"too many values":       {5_000, 500},
		"too many empty values": {5_000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLargeStatus(tc.n, tc.size)
			provider := s.ProviderStatus.DeepCopy()
			LimitSize(s)
			if got := getTextSize(t, s); got > maxTextSize {
				t.Errorf("%d bytes", got)
			}
			if diff := cmp.Diff(provider, s.ProviderStatus); diff != "" {
				t.Error("providerStatus changed")
			}
			if len(s.LastErrors) != 5 || len(s.LastError.Message) > 1024 || strings.ContainsAny(s.LastError.Message, "\n\x01") {
				t.Errorf("errors: %d, %d bytes", len(s.LastErrors), len(s.LastError.Message))
			}
			for _, ours := range []lsv1alpha1.ConditionType{contract.ConditionBackground, contract.ConditionDeployed} {
				if contract.GetCondition(s.Conditions, ours) == nil {
					t.Errorf("%s is gone", ours)
				}
			}
			note := contract.GetCondition(s.Conditions, contract.ConditionTruncated)
			missing := tc.n + 2 - len(s.Conditions)
			if note != nil {
				missing++
				if !strings.HasPrefix(note.Message, fmt.Sprintf("%d conditions", missing)) {
					t.Errorf("%d missing, but %q", missing, note.Message)
				}
			} else if missing != 0 {
				t.Errorf("%d conditions are missing, and no condition contains their number", missing)
			}
			again := s.DeepCopy()
			LimitSize(again)
			if diff := cmp.Diff(s, again); diff != "" {
				t.Errorf("not stable: %s", diff)
			}
		})
	}
	LimitSize(nil)
}

func TestLimitSizeKeepsSmallValues(t *testing.T) {
	t.Parallel()
	s := newStartedStatus()
	s.Conditions[0].Message = "two\nlines are fine in a condition"
	before := s.DeepCopy()
	LimitSize(s)
	if diff := cmp.Diff(before, s); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

func TestLimitSizeDoesNotChangeCopies(t *testing.T) {
	t.Parallel()
	s := newLargeStatus(10, 40_000)
	shared := *s
	before := shared.DeepCopy()
	LimitSize(s)
	if diff := cmp.Diff(before, &shared); diff != "" {
		t.Error("Bound changed values that another status shares")
	}
}

// TestLimitSizeKeepsNewestErrors checks that the oldest errors of a long history are dropped.
func TestLimitSizeKeepsNewestErrors(t *testing.T) {
	t.Parallel()
	s := lsv1alpha1.DeployItemStatus{}
	for i := range 7 {
		s.LastErrors = append(s.LastErrors, newError("A", fmt.Sprint(i), i, i))
	}
	LimitSize(&s)
	if len(s.LastErrors) != 5 || s.LastErrors[0].Message != "2" || s.LastErrors[4].Message != "6" {
		t.Errorf("%d errors, from %q on", len(s.LastErrors), s.LastErrors[0].Message)
	}
}

// TestLimitSizeKeepsOwnConditions checks that the library's conditions are kept, whatever else a deployer writes to the
// status.
func TestLimitSizeKeepsOwnConditions(t *testing.T) {
	t.Parallel()
	own := contract.AllConditionTypes()
	s := newLargeStatus(1_000, 10)
	for _, ours := range own {
		s.Conditions = append(contract.RemoveCondition(s.Conditions, ours), newCondition(ours, "True", -2))
	}
	LimitSize(s)
	for _, ours := range own {
		if contract.GetCondition(s.Conditions, ours) == nil {
			t.Errorf("%s is gone", ours)
		}
	}
}

// TestLimitSizeEscapesControlCharacters checks that Bound escapes control characters, which could change how other
// texts are displayed.
func TestLimitSizeEscapesControlCharacters(t *testing.T) {
	t.Run("Bound escapes control characters in errors and conditions [F12]", func(t *testing.T) {
		const evil = "a\u202eb\nc\u2066d"
		e := newError(evil, evil, 0, 0)
		c := newCondition("C", "True", -1)
		c.Message, c.Reason = evil, evil
		s := &lsv1alpha1.DeployItemStatus{LastError: e, FirstError: e.DeepCopy(), LastErrors: []*lsv1alpha1.Error{e.DeepCopy()}, Conditions: []lsv1alpha1.Condition{c}}
		LimitSize(s)
		body := fmt.Sprintf("%+v %+v %+v %+v", *s.LastError, *s.FirstError, *s.LastErrors[0], s.Conditions)
		if strings.ContainsAny(body, "\u202e\u2066") || strings.Count(body, `a\u202eb`) != 8 {
			t.Errorf("shown as %q", body)
		}
	})
}
