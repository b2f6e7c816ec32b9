// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

func newDrift(manager string, fields ...string) Drift {
	return Drift{Item: item, Object: settings, Reason: DriftReasonChanged, Changes: []Change{{Manager: manager, Fields: fields}}}
}

func TestFightDetector(t *testing.T) {
	type step struct {
		after time.Duration
		event Drift
		want  Correction
	}
	hpa := newDrift("hpa", "spec.replicas")
	slow := func(d time.Duration) Correction {
		return Correction{Delay: d, Fight: true, Manager: "hpa", Field: "spec.replicas"}
	}
	const m, s = time.Minute, time.Second
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"Fight": {
			reason: "the third within five minutes is slow, and each further one slower, up to ten minutes",
			steps: []step{
				{0, hpa, Correction{}},
				{s, hpa, Correction{}},
				{s, hpa, slow(10 * s)},
				{11 * s, hpa, slow(20 * s)},
				{21 * s, hpa, slow(40 * s)},
				{41 * s, hpa, slow(80 * s)},
				{2 * m, hpa, slow(160 * s)},
				{3 * m, hpa, slow(320 * s)},
				{6 * m, hpa, slow(10 * m)},
				{11 * m, hpa, slow(10 * m)},
			},
		},
		"Rare":       {"three in six minutes are none", []step{{0, hpa, Correction{}}, {3 * m, hpa, Correction{}}, {3 * m, hpa, Correction{}}, {m, hpa, slow(10 * s)}}},
		"MadePeace":  {"quiet for the last delay and five minutes", []step{{0, hpa, Correction{}}, {s, hpa, Correction{}}, {s, hpa, slow(10 * s)}, {5*m + 11*s, hpa, Correction{}}, {s, hpa, Correction{}}}},
		"OtherField": {"each field counts for itself", []step{{0, hpa, Correction{}}, {s, hpa, Correction{}}, {s, newDrift("hpa", "spec.paused"), Correction{}}}},
		"OtherHand":  {"each manager counts for itself", []step{{0, hpa, Correction{}}, {s, hpa, Correction{}}, {s, newDrift("kubectl", "spec.replicas"), Correction{}}}},
		"AmongOthers": {
			reason: "one field in common is enough",
			steps:  []step{{0, hpa, Correction{}}, {s, newDrift("hpa", "a", "spec.replicas"), Correction{}}, {s, newDrift("hpa", "b", "spec.replicas"), slow(10 * s)}},
		},
		"Deleter": {
			reason: "nothing is known of who deletes",
			steps: []step{
				{0, Drift{Object: settings, Reason: DriftReasonDeleted}, Correction{}},
				{s, Drift{Object: settings, Reason: DriftReasonDeleted}, Correction{}},
				{s, Drift{Object: settings, Reason: DriftReasonDeleted}, Correction{Delay: 10 * s, Fight: true, Field: "Gone"}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(start.Time)
			g := NewFightDetector(FightOptions{Clock: clk})
			for i, st := range tc.steps {
				clk.SetTime(clk.Now().Add(st.after))
				if diff := cmp.Diff(st.want, g.AddCorrection(st.event)); diff != "" {
					t.Errorf("%s, step %d (-want +got):\n%s", tc.reason, i, diff)
				}
			}
		})
	}
}

func TestFightDetectorIsBounded(t *testing.T) {
	g := NewFightDetector(FightOptions{MaxEntries: 3, Clock: clocktesting.NewFakeClock(start.Time)})
	fighter := newDrift("hpa", "spec.replicas")
	g.AddCorrection(fighter)
	g.AddCorrection(fighter)
	for i := range 2 {
		g.AddCorrection(newDrift("kubectl", fmt.Sprint(i)))
	}
	if got := g.AddCorrection(fighter); !got.Fight {
		t.Error("the one healed last was forgotten")
	}
	g.AddCorrection(newDrift("kubectl", "one more"))
	if got := g.AddCorrection(fighter); !got.Fight {
		t.Error("one was forgotten although others were healed longer ago")
	}
	for i := range 100 {
		g.AddCorrection(newDrift("kubectl", fmt.Sprint(i)))
	}
	if got := g.records.Len(); got != 3 {
		t.Errorf("%d entries, want 3", got)
	}
	if got := g.AddCorrection(fighter); got.Fight {
		t.Error("the one healed longest ago was kept")
	}
}
