// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// TestWatchIsCurrentAfterTheNextSuccess ensures that the stored objects count as up to date again as soon as a request
// succeeds.
func TestWatchIsCurrentAfterTheNextSuccess(t *testing.T) {
	w, s, _ := newTestWatcher(t)
	must(t, s.Replace([]any{newObject(withOwnFields(both))}, "10"))
	for range 2 {
		if err := s.recordAnswer(t.Context(), errors.New("connection reset")); err == nil {
			t.Error("the error is lost")
		}
		if _, known := w.Get(configMaps, settings.NamespacedName); known {
			t.Error("an interrupted watch is trusted")
		}
		must(t, s.recordAnswer(t.Context(), nil))
		if _, known := w.Get(configMaps, settings.NamespacedName); !known {
			t.Error("a watch that works again is not trusted")
		}
	}
}

// TestMissingKindIsRequestedAgainSoon ensures that a watch of a missing kind is retried earlier than a forbidden watch,
// because the next object of the item may define the kind.
func TestMissingKindIsRequestedAgainSoon(t *testing.T) {
	var there atomic.Bool
	tg := newFakeTarget(t, func(string, string) error {
		if there.Load() {
			return nil
		}
		return apierrors.NewNotFound(configMaps.GroupResource(), "")
	})
	clk := clocktesting.NewFakeClock(start.Time)
	w := New(tg, Options{Clock: clk})
	w.Start(t.Context())
	scopeAfter := func(rest time.Duration) Scope {
		clk.SetTime(clk.Now().Add(rest))
		c, err := w.Watch(t.Context(), configMaps, "a")
		must(t, err)
		return c.Scope
	}
	if got := scopeAfter(0); got != ScopeNone {
		t.Fatal(got)
	}
	there.Store(true)
	if got := scopeAfter(missingRetryDelay - 1); got != ScopeNone {
		t.Errorf("asked again too soon: %s", got)
	}
	if got := scopeAfter(1); got != ScopeCluster {
		t.Errorf("not asked again: %s", got)
	}
}

// TestMarkServed checks that a refused watch is tried again at once after an object of the resource was written, unless
// the target forbids the watch.
func TestMarkServed(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want Scope
	}{
		"a watch of a resource that was not served is tried again at once [F105]": {apierrors.NewNotFound(configMaps.GroupResource(), ""), ScopeCluster},
		"a watch that is forbidden is not tried again at once [F105]":             {newForbiddenFunc("all"), ScopeNone},
	} {
		t.Run(name, func(t *testing.T) {
			var there atomic.Bool
			w := New(newFakeTarget(t, func(string, string) error {
				if there.Load() {
					return nil
				}
				return tc.err
			}), Options{})
			w.Start(t.Context())
			before, err := w.Watch(t.Context(), configMaps)
			must(t, err)
			there.Store(true)
			w.MarkServed(configMaps)
			after, err := w.Watch(t.Context(), configMaps)
			must(t, err)
			if before.Scope != ScopeNone || before.NotServed != (tc.want == ScopeCluster) || after.Scope != tc.want {
				t.Errorf("got the coverage %+v, then %+v, want the scope %s", before, after, tc.want)
			}
		})
	}
}

// TestOnlyOwnObjectsAreRequested ensures that lists and watches leave out objects that no item owns.
func TestOnlyOwnObjectsAreRequested(t *testing.T) {
	tg := newFakeTarget(t, allowAll)
	var selectors [2]atomic.Pointer[string]
	tg.PrependReactor("list", "*", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		selectors[0].Store(new(a.(clienttesting.ListAction).GetListRestrictions().Labels.String()))
		return false, nil, nil
	})
	tg.PrependWatchReactor("*", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		selectors[1].Store(new(a.(clienttesting.WatchAction).GetWatchRestrictions().Labels.String()))
		return false, nil, nil
	})
	w := New(tg, Options{})
	w.Start(t.Context())
	if c, err := w.Watch(t.Context(), configMaps); err != nil || c.Scope != ScopeCluster {
		t.Fatal(c, err)
	}
	for i, verb := range []string{"list", "watch"} {
		waitUntil(t, verb, func() bool { return selectors[i].Load() != nil })
		if got := *selectors[i].Load(); got != ownership.LabelItem {
			t.Errorf("%s with the selector %q", verb, got)
		}
	}
}
