// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/declarative"
)

const (
	// callCount is the number of times that CheckPure calls a handler with the same input. With this number, the chance
	// that two keys of a map have the same order in all calls is about one in half a million.
	callCount = 20
	// callInterval is the time between two calls. The calls therefore see times that differ in the second, the minute, the
	// hour and the day.
	callInterval = 25*time.Hour + time.Minute + time.Second
)

// CheckPure fails the test unless a handler returns the same children and the same status each time it gets the same
// input. The current time and the order of the observed children must not matter. CheckPure reports the fields that
// differ. It then calls the handler with the result of the first call as observed children, and checks that this call
// changes nothing.
//
// A handler may generate random values once with declarative.ValueOr. CheckPure then needs children that already
// contain these values. To get such children, call [Run] first and pass Plan.Observed.
//
// The handler is called in a testing/synctest bubble, whose clock advances only between calls. If the handler calls
// other systems over the network, replace them by fakes.
func CheckPure(t *testing.T, handler declarative.Handler, options declarative.Options, item *lsv1alpha1.DeployItem, children ...any) {
	t.Helper()
	for _, fault := range findImpurities(t, handler, options, item, children) {
		t.Error(fault)
	}
}

// findImpurities returns a text for each problem that CheckPure reports.
func findImpurities(t *testing.T, handler declarative.Handler, options declarative.Options, item *lsv1alpha1.DeployItem, children []any) (faults []string) {
	t.Helper()
	b, err := prepare(handler, options, item, children)
	if err != nil {
		return []string{err.Error()}
	}
	synctest.Test(t, func(t *testing.T) {
		first, err := b.runRound(t, 0)
		if err != nil {
			faults = append(faults, fmt.Sprintf("the handler failed: %v", err))
			return
		}
		found := map[string]bool{}
		for i := 1; i < callCount; i++ {
			<-time.After(callInterval)
			plan, err := b.runRound(t, i)
			if err != nil {
				found[fmt.Sprintf("the handler fails in only some of the calls with the same input: %v", err)] = true
				continue
			}
			for _, path := range diffPlans(first, plan) {
				found["the same input results in a different "+path] = true
			}
		}
		faults = slices.Sorted(maps.Keys(found))
		if len(faults) == 0 {
			faults = b.runWithObserved(t, first)
		}
	})
	slices.Sort(faults)
	return faults
}

// runRound calls the handler. The order of the children depends on the number of the round.
func (b *simulation) runRound(t *testing.T, round int) (*Plan, error) {
	t.Helper()
	req, err := b.newRequest()
	if err != nil {
		return nil, err
	}
	if round > 0 {
		order := rand.New(rand.NewPCG(uint64(round), 0)) //nolint:gosec // a failure must be reproducible
		order.Shuffle(len(req.Children), reflect.Swapper(req.Children))
	}
	return b.computePlan(t.Context(), req)
}

// runWithObserved calls the handler with the children that result from the first call. It returns one text for each
// change that this call would cause.
func (b *simulation) runWithObserved(t *testing.T, first *Plan) []string {
	t.Helper()
	plan, err := Run(t.Context(), b.handler, b.options, b.item, first.Observed...)
	if err != nil {
		return []string{fmt.Sprintf("the handler fails if all children that it returned exist: %v", err)}
	}
	var out []string
	for _, step := range plan.ListSteps() {
		if !strings.HasPrefix(step, string(ActionMissing)) {
			out = append(out, "the handler still changes something when all children exist as it returned them: "+step)
		}
	}
	return out
}

// diffPlans describes how two plans for the same input differ.
func diffPlans(a, b *Plan) []string {
	var out []string
	was, is := a.listDesired(), b.listDesired()
	for _, name := range unionKeys(was, is) {
		old, before := was[name]
		now, after := is[name]
		if !before || !after {
			out = append(out, "set of children: "+name+" is in only some of the responses")
			continue
		}
		for _, path := range diffFields("", old, now) {
			out = append(out, name+" "+path)
		}
	}
	if a.Wait != b.Wait {
		out = append(out, "Wait")
	}
	return out
}

// listDesired returns the desired children by name, and the status under the name "status".
func (p *Plan) listDesired() map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, step := range p.Steps {
		if step.Object != nil {
			out[step.Ref.String()] = step.Object
		}
	}
	status := map[string]any{}
	if len(p.Status) > 0 && json.Unmarshal(p.Status, &status) == nil {
		out["status"] = status
	}
	return out
}

// diffFields returns the paths of the fields in which two objects differ, including fields that only one of them has.
// The order of lists matters.
func diffFields(path string, a, b map[string]any) []string {
	var out []string
	for _, key := range unionKeys(a, b) {
		below := path + "." + key
		if strings.ContainsAny(key, "./") {
			below = path + "[" + key + "]"
		}
		old, isMap := a[key].(map[string]any)
		now, isMapToo := b[key].(map[string]any)
		switch {
		case isMap && isMapToo:
			out = append(out, diffFields(below, old, now)...)
		case !reflect.DeepEqual(a[key], b[key]):
			out = append(out, below)
		}
	}
	return out
}

// unionKeys returns the sorted keys of both maps.
func unionKeys[V any](a, b map[string]V) []string {
	all := map[string]V{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
