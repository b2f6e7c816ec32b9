// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/extension"
)

type result = extension.HookResult

func newHookResult(abort, requeue bool, after time.Duration) *result {
	return &result{AbortReconcile: abort, ReconcileResult: reconcile.Result{Requeue: requeue, RequeueAfter: after}}
}

func withPriority(r *result, p int) *result {
	r.ReconcileResult.Priority = &p
	return r
}

func TestAggregateHookResults(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		in     []*result
		want   *result
		// inverted is the result of AggregateHookResultsWithInvertedAbortPriority. If it is nil, the expected result is
		// in the field `want`.
		inverted *result
	}{
		"no results [L14]":                                     {reason: "no hook returned a result", in: nil, want: nil},
		"only nil results [L14]":                               {reason: "no hook returned a result", in: []*result{nil, nil, nil}, want: nil},
		"one empty result [L15]":                               {reason: "an empty result counts", in: []*result{nil, {}}, want: &result{}},
		"one result that aborts [L15]":                         {reason: "nil is not false", in: []*result{nil, newHookResult(true, false, 0), nil}, want: newHookResult(true, false, 0)},
		"one result with both requeue fields [L22]":            {reason: "copied unchanged", in: []*result{newHookResult(false, true, time.Minute)}, want: newHookResult(false, true, time.Minute)},
		"one result with a negative time [L15]":                {reason: "copied unchanged", in: []*result{newHookResult(false, false, -1), nil}, want: newHookResult(false, false, -1)},
		"the first result aborts [L16] [L17]":                  {reason: "OR, inverted AND", in: []*result{newHookResult(true, false, 0), {}}, want: newHookResult(true, false, 0), inverted: &result{}},
		"the last result aborts [L16] [L17]":                   {reason: "OR, inverted AND", in: []*result{{}, {}, newHookResult(true, false, 0)}, want: newHookResult(true, false, 0), inverted: &result{}},
		"all results except nil abort [L17]":                   {reason: "nil must not count as false", in: []*result{newHookResult(true, false, 0), nil, newHookResult(true, false, 0)}, want: newHookResult(true, false, 0)},
		"the first result requeues [L18]":                      {reason: "OR", in: []*result{newHookResult(false, true, 0), {}}, want: newHookResult(false, true, 0)},
		"the last result requeues [L18]":                       {reason: "OR", in: []*result{{}, {}, newHookResult(false, true, 0)}, want: newHookResult(false, true, 0)},
		"the smallest time is returned [L19]":                  {reason: "the soonest wins", in: []*result{newHookResult(false, false, 3), newHookResult(false, false, 1), newHookResult(false, false, 2)}, want: newHookResult(false, false, 1)},
		"a time of zero is ignored [L19]":                      {reason: "greater than zero", in: []*result{{}, newHookResult(false, false, 5), {}}, want: newHookResult(false, false, 5)},
		"a negative time of the first result is ignored [L19]": {reason: "greater than zero", in: []*result{newHookResult(false, false, -5), newHookResult(false, false, 5)}, want: newHookResult(false, false, 5)},
		"a negative time of the last result is ignored [L19]":  {reason: "greater than zero", in: []*result{newHookResult(false, false, 5), newHookResult(false, false, -5)}, want: newHookResult(false, false, 5)},
		"negative times are ignored [L19]":                     {reason: "none is greater than zero", in: []*result{newHookResult(false, false, -5), newHookResult(false, false, -6)}, want: &result{}},
		"requeue precedes a time [L20]":                        {reason: "immediately", in: []*result{newHookResult(false, true, 0), newHookResult(false, false, 5)}, want: newHookResult(false, true, 0)},
		"requeue precedes its own time [L20]":                  {reason: "immediately", in: []*result{{}, newHookResult(false, true, 5)}, want: newHookResult(false, true, 0)},
		"the highest priority is returned":                     {reason: "most urgent wins", in: []*result{withPriority(&result{}, -50), withPriority(&result{}, 7), withPriority(&result{}, 3)}, want: withPriority(&result{}, 7)},
		"no priority is not a priority of zero":                {reason: "nil is ignored", in: []*result{{}, withPriority(&result{}, -50), {}}, want: withPriority(&result{}, -50)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, extension.AggregateHookResults(tc.in...)); diff != "" {
				t.Errorf("%s: any: -want +got:\n%s", tc.reason, diff)
			}
			want := tc.want
			if tc.inverted != nil {
				want = tc.inverted
			}
			if diff := cmp.Diff(want, extension.AggregateHookResultsWithInvertedAbortPriority(tc.in...)); diff != "" {
				t.Errorf("%s: inverted: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

type aggregator func(...*result) *result

func newAggregators() map[string]aggregator {
	return map[string]aggregator{
		"any": extension.AggregateHookResults,
		"all": extension.AggregateHookResultsWithInvertedAbortPriority,
	}
}

func TestAggregateCopies(t *testing.T) {
	for rule, aggregate := range newAggregators() {
		t.Run(rule+": a single result is copied [L15]", func(t *testing.T) {
			own := withPriority(newHookResult(true, true, time.Minute), 3)
			got := aggregate(nil, own)
			if diff := cmp.Diff(own, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			got.AbortReconcile = false
			got.ReconcileResult.RequeueAfter = 0
			*got.ReconcileResult.Priority = 9
			if diff := cmp.Diff(withPriority(newHookResult(true, true, time.Minute), 3), own); diff != "" {
				t.Errorf("the hook's own result changed: -want +got:\n%s", diff)
			}
		})
		t.Run(rule+": the result of several results shares no memory with them [L15]", func(t *testing.T) {
			low, high := withPriority(&result{}, 1), withPriority(&result{}, 2)
			for _, in := range [][]*result{{low, high}, {high, low}} {
				*aggregate(in...).ReconcileResult.Priority = 9
			}
			if *low.ReconcileResult.Priority != 1 || *high.ReconcileResult.Priority != 2 {
				t.Errorf("got %d and %d, want 1 and 2", *low.ReconcileResult.Priority, *high.ReconcileResult.Priority)
			}
		})
	}
}

// randomResults returns random results, of which at least the given number are not nil.
func randomResults(r *rand.Rand, atLeast int) []*result {
	results := make([]*result, 0, 8)
	for range atLeast + r.IntN(4) {
		one := newHookResult(r.IntN(2) == 0, r.IntN(4) == 0, time.Duration(r.IntN(7)-2)*time.Second)
		if r.IntN(2) == 0 {
			withPriority(one, r.IntN(5)-2)
		}
		results = append(results, one)
	}
	for range r.IntN(3) {
		results = append(results, nil)
	}
	shuffle(r, results)
	return results
}

func shuffle(r *rand.Rand, results []*result) {
	r.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
}

func TestAggregateInvariants(t *testing.T) {
	const rounds = 5000
	for rule, aggregate := range newAggregators() {
		r := rand.New(rand.NewPCG(1, 2))
		law := func(name string, atLeast int, other func([]*result) *result) {
			t.Run(rule+": "+name, func(t *testing.T) {
				for range rounds {
					in := randomResults(r, atLeast)
					want := aggregate(in...)
					if diff := cmp.Diff(want, other(in)); diff != "" {
						t.Fatalf("of %v: -want +got:\n%s", in, diff)
					}
				}
			})
		}
		law("nil is the identity [L14]", 0, func(in []*result) *result {
			return aggregate(nil, aggregate(append([]*result{nil}, in...)...), nil)
		})
		law("order does not matter [L21]", 0, func(in []*result) *result {
			in = append([]*result(nil), in...)
			shuffle(r, in)
			return aggregate(in...)
		})
		law("grouping does not matter for several [L13] [L21]", 2, func(in []*result) *result {
			i := r.IntN(len(in) + 1)
			j := i + r.IntN(len(in)+1-i)
			return aggregate(aggregate(in[:i]...), aggregate(in[i:j]...), aggregate(in[j:]...))
		})
		law("one by one is all at once [L13]", 2, func(in []*result) *result {
			var sum *result
			for _, one := range in {
				sum = aggregate(sum, one)
			}
			return sum
		})
	}
}

// deployerlib starts with an empty result and merges the result of each hook type into it.
func TestAggregateAcrossHookTypes(t *testing.T) {
	t.Run("merging type by type, from the default result, equals merging all types at once [L13] [L21]", func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 5000 {
			running := &result{}
			all := []*result{running}
			for range 1 + r.IntN(4) {
				ofType := randomResults(r, 0)
				running = extension.AggregateHookResults(running, extension.AggregateHookResults(ofType...))
				all = append(all, ofType...)
			}
			if diff := cmp.Diff(extension.AggregateHookResults(all...), running); diff != "" {
				t.Fatalf("of %v: -want +got:\n%s", all, diff)
			}
		}
	})
	t.Run("a single result with both requeue fields causes an immediate requeue [L22]", func(t *testing.T) {
		lone := extension.AggregateHookResults(newHookResult(false, true, time.Hour))
		got := extension.AggregateHookResults(&result{}, lone)
		if diff := cmp.Diff(newHookResult(false, true, 0), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("a requeue is kept if another type returns a time [L21]", func(t *testing.T) {
		got := extension.AggregateHookResults(newHookResult(false, true, 0), newHookResult(false, false, time.Hour))
		if diff := cmp.Diff(newHookResult(false, true, 0), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
