// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/extension"
)

// decode reads results from fuzz input: two bytes each, flags and time.
func decode(data []byte) []*result {
	var results []*result
	for pair := range slices.Chunk(data, 2) {
		if len(pair) < 2 || pair[0]&1 == 0 {
			results = append(results, nil)
			continue
		}
		one := hookResult(pair[0]&2 != 0, pair[0]&4 != 0, time.Duration(int8(pair[1])))
		if pair[0]&8 != 0 {
			withPriority(one, int(pair[0]>>4)-8)
		}
		results = append(results, one)
	}
	return results
}

// oracle follows the text of the rules, not their implementation.
func oracle(in []*result, abortNeedsAll bool) *result {
	var given []result
	for _, r := range in {
		if r != nil {
			given = append(given, *r)
		}
	}
	if len(given) == 0 {
		return nil
	}
	if len(given) == 1 {
		return &given[0]
	}
	aborts := func(r result) bool { return r.AbortReconcile }
	continues := func(r result) bool { return !r.AbortReconcile }
	out := &result{AbortReconcile: slices.ContainsFunc(given, aborts)}
	if abortNeedsAll {
		out.AbortReconcile = !slices.ContainsFunc(given, continues)
	}
	out.ReconcileResult.Requeue = slices.ContainsFunc(given, func(r result) bool { return r.ReconcileResult.Requeue })
	var times []time.Duration
	var priorities []int
	for _, r := range given {
		if r.ReconcileResult.RequeueAfter > 0 {
			times = append(times, r.ReconcileResult.RequeueAfter)
		}
		if r.ReconcileResult.Priority != nil {
			priorities = append(priorities, *r.ReconcileResult.Priority)
		}
	}
	if len(times) > 0 && !out.ReconcileResult.Requeue {
		out.ReconcileResult.RequeueAfter = slices.Min(times)
	}
	if len(priorities) > 0 {
		withPriority(out, slices.Max(priorities))
	}
	return out
}

func FuzzAggregate(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 1, 0})
	f.Add([]byte{3, 5, 0, 0, 1, 0xfb, 9, 3})
	f.Add([]byte{5, 5, 1, 2, 0xf9, 0x80})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := decode(data)
		before := decode(data)
		if diff := cmp.Diff(oracle(in, false), extension.AggregateHookResults(in...)); diff != "" {
			t.Errorf("any: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(oracle(in, true), extension.AggregateHookResultsWithInvertedAbortPriority(in...)); diff != "" {
			t.Errorf("all: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(before, in); diff != "" {
			t.Errorf("the input changed: -want +got:\n%s", diff)
		}
	})
}
