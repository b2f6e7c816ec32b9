// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// TestGateWhileTheCacheLags is about pops that come before the time that a pass asked for.
func TestGateWhileTheCacheLags(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	item := func(resourceVersion, phase string) *lsv1alpha1.DeployItem {
		di := &lsv1alpha1.DeployItem{}
		di.ResourceVersion, di.Status.Phase = resourceVersion, lsv1alpha1.DeployItemPhase(phase)
		return di
	}
	cases := map[string]struct {
		reason  string
		prepare func(*itemState)
		seen    *lsv1alpha1.DeployItem
		wait    time.Duration
		forgets bool
	}{
		"own version":        {"nothing is new", func(*itemState) {}, item("5", "Progressing"), time.Hour, false},
		"cache lags":         {"a version from before our own write must not cut a wait short", func(*itemState) {}, item("4", "Init"), time.Hour, false},
		"changed":            {"somebody else's change opens the gate", func(*itemState) {}, item("6", "Init"), 0, true},
		"changed under us":   {"what we wrote onto an unseen change is not known", func(s *itemState) { s.print = fingerprint{} }, item("4", "Init"), 0, true},
		"triggered":          {"a trigger opens the gate", func(s *itemState) { s.trigger() }, item("5", "Progressing"), 0, false},
		"triggered, it lags": {"also while the cache lags", func(s *itemState) { s.trigger() }, item("4", "Init"), 0, false},
		"time is over":       {"the wait ended", func(s *itemState) { s.notBefore = now }, item("5", "Progressing"), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &itemState{failures: 3}
			s.wrote("5")
			s.end(printOf(item("5", "Progressing")), true, now.Add(time.Hour))
			tc.prepare(s)
			if got := s.gate(tc.seen, now); got != tc.wait {
				t.Errorf("%s: wait = %s, want %s", tc.reason, got, tc.wait)
			}
			if forgets := s.failures == 0; forgets != tc.forgets {
				t.Errorf("%s: failures = %d, forgotten want %t", tc.reason, s.failures, tc.forgets)
			}
		})
	}
}
