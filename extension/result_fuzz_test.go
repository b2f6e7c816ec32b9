// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/extension"
)

// decode converts fuzz input to results. Each result consists of two bytes: the flags and the time.
func decode(data []byte) []*result {
	var results []*result
	for pair := range slices.Chunk(data, 2) {
		if len(pair) < 2 || pair[0]&1 == 0 {
			results = append(results, nil)
			continue
		}
		one := newHookResult(pair[0]&2 != 0, pair[0]&4 != 0, time.Duration(int8(pair[1])))
		if pair[0]&8 != 0 {
			withPriority(one, int(pair[0]>>4)-8)
		}
		results = append(results, one)
	}
	return results
}

// mergeByRules merges results according to the documented rules, independently of the tested code.
func mergeByRules(in []*result, abortNeedsAll bool) *result {
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
	f.Add([]byte("1090Y0"))
	f.Add([]byte("90000090"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := decode(data)
		before := decode(data)
		if diff := cmp.Diff(mergeByRules(in, false), extension.AggregateHookResults(in...)); diff != "" {
			t.Errorf("any: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(mergeByRules(in, true), extension.AggregateHookResultsWithInvertedAbortPriority(in...)); diff != "" {
			t.Errorf("all: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(before, in); diff != "" {
			t.Errorf("the input changed: -want +got:\n%s", diff)
		}
		for name, merge := range map[string]func(...*result) *result{
			"any": extension.AggregateHookResults, "all": extension.AggregateHookResultsWithInvertedAbortPriority,
		} {
			checkMergeLaws(t, name, merge, in)
		}
	})
}

// checkMergeLaws requires that the merged result does not depend on the order or the grouping of the results, or on
// additional nil results. It also requires that the values of the merged result are within the range of the inputs.
func checkMergeLaws(t *testing.T, name string, merge func(...*result) *result, in []*result) {
	t.Helper()
	whole := merge(in...)
	backwards := slices.Clone(in)
	slices.Reverse(backwards)
	others := map[string]*result{"backwards": merge(backwards...), "with nil": merge(append(slices.Clone(in), nil)...), "alone": merge(whole)}
	for cut := range in {
		others["in two groups"] = merge(merge(in[:cut]...), merge(in[cut:]...))
	}
	for how, got := range others {
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Errorf("%s, %s: -at once +so:\n%s", name, how, diff)
		}
	}
	if whole == nil {
		return
	}
	after := whole.ReconcileResult.RequeueAfter
	if after != 0 && !slices.ContainsFunc(in, func(r *result) bool { return r != nil && r.ReconcileResult.RequeueAfter == after }) {
		t.Errorf("%s: got the reconcile after %s, which was not requested", name, after)
	}
}

// FuzzExecute runs ExecuteHooks with random hooks for each hook type. The hooks must be called in order up to the first
// hook that fails, and their results must be merged by the rule of the type.
func FuzzExecute(f *testing.F) {
	f.Add(uint8(0), []byte{})
	f.Add(uint8(3), []byte{1, 0, 0, 0, 3, 5, 9, 3})
	f.Add(uint8(5), []byte{1, 0, 0, 1, 3, 5})
	f.Add(uint8(250), []byte{5, 5, 0, 2, 1, 1})
	f.Add(uint8(11), []byte("9090"))
	f.Add(uint8('-'), []byte("ppppppppppppppp"))
	f.Add(uint8(8), []byte("10y090"))
	f.Fuzz(func(t *testing.T, place uint8, data []byte) {
		types := extension.AllHookTypes()
		typ := types[int(place)%len(types)]
		results := decode(data)
		var calls []int
		hooks, failsAt := extension.ReconcileExtensionHooks{}, -1
		for i, r := range results {
			fails := r == nil && 2*i+1 < len(data) && data[2*i+1]%4 == 1
			panics := r == nil && 2*i+1 < len(data) && data[2*i+1]%4 == 2
			if (fails || panics) && failsAt < 0 {
				failsAt = i
			}
			hooks = hooks.RegisterHook(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
				calls = append(calls, i)
				if panics {
					panic("a hook")
				}
				if fails {
					return newHookResult(true, true, 1), errors.New("a hook")
				}
				return r, nil
			}, typ)
		}
		got, err := execute(t, hooks, typ)
		want, last := mergeByRules(results, isMergedWithAll(typ)), len(results)
		if failsAt >= 0 {
			want, last = nil, failsAt+1
		}
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (failsAt >= 0) {
			t.Errorf("%s: error %v, -want +got:\n%s", typ, err, diff)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%s[%d]", typ, failsAt)) {
			t.Errorf("%v does not name hook %d", err, failsAt)
		}
		for i := range last {
			if len(calls) != last || calls[i] != i {
				t.Fatalf("%s: calls %v, want the first %d in order", typ, calls, last)
			}
		}
	})
}

// isMergedWithAll reports whether the merged result of a hook type aborts only if all results abort.
func isMergedWithAll(typ extension.HookType) bool {
	return typ == extension.DuringResponsibilityCheckHook || typ == extension.ShouldReconcileHook
}
