// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestObserve(t *testing.T) {
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10"}}
	p := printOf(di)
	t.Run("a new print wakes", func(t *testing.T) {
		if _, wake := (&itemState{}).observe(di, p); !wake {
			t.Error("not woken")
		}
	})
	t.Run("the seen and the expected print do not", func(t *testing.T) {
		for _, s := range []*itemState{{print: p}, {expected: []fingerprint{p}}} {
			if _, wake := s.observe(di, p); wake {
				t.Error("woken")
			}
		}
	})
	t.Run("a version that our last write covers does not, unless it met a foreign change", func(t *testing.T) {
		for version, foreign := range map[string]bool{"10": false, "11": false, "9": true} {
			s := &itemState{lastWrite: version}
			if _, wake := s.observe(di, p); wake != foreign {
				t.Errorf("last write %s: woken = %t", version, wake)
			}
			s.metForeign()
			if _, wake := s.observe(di, p); !wake {
				t.Errorf("last write %s onto a foreign change: not woken", version)
			}
		}
	})
	t.Run("the event that a pass waits for does, and opens the gate", func(t *testing.T) {
		s := &itemState{print: p, lastWrite: "10", awaited: true}
		if _, wake := s.observe(di, p); !wake || !s.triggered || s.awaited {
			t.Errorf("state %+v", s)
		}
	})
	t.Run("an older one does not", func(t *testing.T) {
		s := &itemState{print: p, lastWrite: "11", awaited: true}
		if _, wake := s.observe(di, p); wake || !s.awaited {
			t.Error("woken")
		}
	})
}

func TestWrote(t *testing.T) {
	s := &itemState{}
	for _, version := range []string{"9", "10", "8"} {
		s.wrote(version)
	}
	if s.lastWrite != "10" {
		t.Errorf("last write is %q, want the newest: 10", s.lastWrite)
	}
	older := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}
	same := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10"}}
	if !s.awaitIfStale(older) || s.awaitIfStale(same) {
		t.Error("only an item older than the last write is stale")
	}
	if (&itemState{}).awaitIfStale(older) {
		t.Error("without a write nothing is stale")
	}
}

func TestClaim(t *testing.T) {
	s, di := &itemState{}, &lsv1alpha1.DeployItem{}
	di.UID, di.Status.JobID = "u", "1"
	if s.claim(di) || !s.claim(di) {
		t.Error("the first claim is new, the second one is not")
	}
	s.unclaim()
	if s.claim(di) {
		t.Error("claimed although it was taken back")
	}
	di.Status.LastReconcileTime = &metav1.Time{Time: moment}
	if s.claim(di) {
		t.Error("a run that began at another time is another run")
	}
}

func TestForget(t *testing.T) {
	all := newStates()
	key := types.NamespacedName{Name: "a"}
	s := all.get(key)
	s.quarantine(true)
	all.forget(key)
	if all.get(key) != s {
		t.Error("an item whose call still hangs was forgotten")
	}
	if s.begin(&run{}) {
		t.Error("a pass began beside a call that hangs")
	}
	s.quarantine(false)
	all.forget(key)
	if all.get(key) == s {
		t.Error("not forgotten")
	}
}

func TestIdentify(t *testing.T) {
	s := &itemState{}
	s.identify("a")
	s.resumed, s.failures, s.abortSeen = true, 3, moment
	s.identify("a")
	if !s.resumed || s.failures != 3 {
		t.Error("the same object started over")
	}
	s.identify("b")
	if s.resumed || s.failures != 0 || !s.abortSeen.IsZero() {
		t.Errorf("another object of the same name did not start over: %+v", s)
	}
}
