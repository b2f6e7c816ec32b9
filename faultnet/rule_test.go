// SPDX-License-Identifier: Apache-2.0

package faultnet_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/faultnet"
)

// TestMatch checks which requests a Match selects.
func TestMatch(t *testing.T) {
	const (
		item   = "GET /apis/g/v1/namespaces/ns/deployitems/a"
		status = "PATCH /apis/g/v1/namespaces/ns/deployitems/a/status"
		create = "POST /apis/g/v1/namespaces/ns/deployitems"
		watch  = "GET /apis/g/v1/namespaces/ns/deployitems?watch=1"
		event  = "POST /api/v1/namespaces/ns/events"
		lease  = "PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/l"
		groups = "GET /apis"
	)
	all := []string{item, status, create, watch, event, lease, groups}
	tests := map[string]struct {
		match faultnet.Match
		want  []string
	}{
		"an empty match": {faultnet.Match{}, []string{item, status, create}},
		"all":            {faultnet.Match{All: true}, all},
		"all writes":     {faultnet.Match{All: true, Verb: faultnet.WriteVerb}, []string{status, create, event, lease}},
		"reads":          {faultnet.Match{Verb: faultnet.ReadVerb}, []string{item}},
		"writes":         {faultnet.Match{Verb: faultnet.WriteVerb}, []string{status, create}},
		"watches":        {faultnet.Match{Verb: "watch"}, []string{watch}},
		"a verb":         {faultnet.Match{Verb: "patch"}, []string{status}},
		"a resource":     {faultnet.Match{Resource: "deployitems"}, []string{item, status, create}},
		"leases":         {faultnet.Match{Resource: "leases"}, []string{lease}},
		"events":         {faultnet.Match{Resource: "events"}, []string{event}},
		"a subresource":  {faultnet.Match{Subresource: "status"}, []string{status}},
		"no subresource": {faultnet.Match{Subresource: faultnet.NoSubresource}, []string{item, create}},
		"a name":         {faultnet.Match{Name: "a"}, []string{item, status}},
		"a namespace":    {faultnet.Match{Namespace: "other"}, nil},
		"a function":     {faultnet.Match{Where: func(r faultnet.Request) bool { return r.Name == "" }}, []string{create}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newFakeServer(t)
			rule := faultnet.Rule{Match: test.match, Times: faultnet.Always, Fault: faultnet.Conflict(), Optional: true}
			network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{rule}})
			u := newTestClient(t, network.Wrap(&rest.Config{Host: server.URL}))
			var got []string
			for _, line := range all {
				method, path, _ := strings.Cut(line, " ")
				if line == watch && !slices.Contains(test.want, watch) {
					continue // a watch that is not refused would not end
				}
				if strings.HasPrefix(u.send(method, path), "409") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestRuleOrder checks that the first rule that is due applies its fault to the request, and that all matching rules
// count the request.
func TestRuleOrder(t *testing.T) {
	server := newFakeServer(t)
	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{
		{Match: faultnet.Match{Verb: faultnet.WriteVerb}},
		{Fault: faultnet.Conflict(), Nth: 2, Times: 2},
		{Fault: faultnet.TokenExpired(), Nth: 3},
	}})
	u := newTestClient(t, network.Wrap(&rest.Config{Host: server.URL}))
	var got []string
	for range 5 {
		got = append(got, u.send("PATCH", objectPath)[:3])
	}
	if diff := cmp.Diff([]string{"200", "409", "409", "401", "200"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff("0 of 5 requests: count\n2 of 5 requests: 409 Conflict\n1 of 5 requests: 401 Unauthorized", network.Report().String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSeedDeterminesFaults checks that the same seed has the same effect on the requests about an object, regardless of
// the order of other requests.
func TestSeedDeterminesFaults(t *testing.T) {
	names := []string{"a", "b", "c"}
	run := func(seed uint64, interleave bool) map[string]string {
		server := newFakeServer(t)
		rule := faultnet.Rule{Fault: faultnet.Conflict(), Chance: 0.5, Times: faultnet.Always}
		network := faultnet.Start(t, faultnet.Scenario{Seed: seed, Rules: []faultnet.Rule{rule}})
		u := newTestClient(t, network.Wrap(&rest.Config{Host: server.URL}))
		got := map[string]string{}
		for i := range 30 * len(names) {
			name := names[i/30]
			if interleave {
				name = names[i%len(names)]
			}
			got[name] += u.send("PATCH", listPath+"/"+name)[:1]
		}
		return got
	}
	first := run(7, false)
	if diff := cmp.Diff(first, run(7, true)); diff != "" {
		t.Errorf("the same seed differs: %s", diff)
	}
	if cmp.Equal(first, run(8, false)) || first["a"] == first["b"] {
		t.Errorf("the dice are always the same: %v", first)
	}
	if hits := strings.Count(first["a"], "4"); hits < 5 || hits > 25 {
		t.Errorf("%d hits of 30 with a chance of one half", hits)
	}
}

// TestChaosEndsInSuccess checks that faults hit, and that everything succeeds in the end.
func TestChaosEndsInSuccess(t *testing.T) {
	server := newFakeServer(t)
	network := faultnet.Start(t, faultnet.Chaos(1, faultnet.Match{Resource: "configmaps"}, 0.1))
	u := newTestClient(t, network.Wrap(&rest.Config{Host: server.URL}))
	for range 40 {
		u.send("PATCH", objectPath)
		u.send("GET", objectPath)
	}
	network.Disable()
	before := server.countObjects()
	if u.send("PATCH", objectPath); server.countObjects() != before+1 {
		t.Error("disarmed, and a write did not come through")
	}
}

// TestUnusedRuleFailsTest checks that a test fails if a rule had no effect. It also checks that the log contains
// neither bodies nor headers of requests.
func TestUnusedRuleFailsTest(t *testing.T) {
	tests := map[string]struct {
		scenario faultnet.Scenario
		errors   []string
	}{
		"a rule that had an effect":          {faultnet.Scenario{Rules: []faultnet.Rule{{Fault: faultnet.Conflict()}}}, nil},
		"an optional rule without an effect": {faultnet.Scenario{Rules: []faultnet.Rule{{Fault: faultnet.Conflict(), Nth: 9, Optional: true}}}, nil},
		"a rule that only counts":            {faultnet.Scenario{Rules: []faultnet.Rule{{}}}, nil},
		"a rule whose request was not sent": {
			faultnet.Scenario{Rules: []faultnet.Rule{{Fault: faultnet.Conflict()}, {Name: "ninth", Fault: faultnet.Conflict(), Nth: 9}}},
			[]string{"faults: rule 2 (ninth) had no effect: 1 requests matched it"},
		},
		"a rule without an earlier response": {
			faultnet.Scenario{Rules: []faultnet.Rule{{Fault: faultnet.Stale(1)}}},
			[]string{"faults: rule 1 (stale by 1 responses) had no effect: 0 requests matched it"},
		},
		"random faults without an effect": {
			faultnet.Chaos(1, faultnet.Match{Resource: "pods"}, 0.5),
			[]string{"faults: only 0 requests were hit, want at least 1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newFakeServer(t)
			w := &fakeTB{TB: t}
			network := faultnet.Start(w, test.scenario)
			cfg := network.Wrap(&rest.Config{Host: server.URL, BearerToken: "canary"})
			newTestClient(t, cfg).send("PATCH", objectPath+"?query=canary", "canary")
			w.runCleanups()
			newTestClient(t, cfg).send("PATCH", objectPath)
			if diff := cmp.Diff(test.errors, w.errors); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			logs := strings.Join(w.logs, "\n")
			if strings.Contains(logs, "canary") || !strings.Contains(logs, "requests: ") {
				t.Errorf("logged:\n%s", logs)
			}
			if name == "a rule that had an effect" && !strings.Contains(logs, `"verb"="patch" "resource"="configmaps"`) {
				t.Errorf("logged:\n%s", logs)
			}
		})
	}
}

// TestInvalidScenarioFailsTest checks that invalid scenarios fail the test immediately.
func TestInvalidScenarioFailsTest(t *testing.T) {
	for name, rule := range map[string]faultnet.Rule{
		"chance":                                 {Chance: 2},
		"times":                                  {Times: -2},
		"nth":                                    {Nth: -1},
		"a stale response to a write":            {Fault: faultnet.Stale(1), Match: faultnet.Match{Verb: "patch"}},
		"a cut of a request that is not a watch": {Fault: faultnet.DropWatch(0), Match: faultnet.Match{Verb: "get"}},
		"a stall of a request that is not a watch": {Fault: faultnet.DelayWatchEvents(0, 1), Match: faultnet.Match{Verb: faultnet.ReadVerb}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &fakeTB{TB: t}
			defer func() {
				if recover() != w || len(w.errors) != 1 {
					t.Errorf("no mistake: %v", w.errors)
				}
			}()
			faultnet.Start(w, faultnet.Scenario{Rules: []faultnet.Rule{rule}})
		})
	}
}

// TestDelaysUseTheClock checks that delays use the clock, are limited, and end with the test.
func TestDelaysUseTheClock(t *testing.T) {
	faults := map[string]struct {
		fault faultnet.Fault
		want  string
	}{
		"delay":   {faultnet.Delay(time.Hour), "200 v1"},
		"timeout": {faultnet.Timeout(time.Hour), "error"},
		"hang":    {faultnet.NewFault("hang", faultnet.BlockRequest()), "error"},
	}
	for name, test := range faults {
		for _, ends := range []string{"the bound", "the test"} {
			t.Run(name+" until "+ends, func(t *testing.T) {
				server := newFakeServer(t)
				w, c := &fakeTB{TB: t}, testingclock.NewFakeClock(time.Unix(0, 0))
				network := faultnet.Start(w, faultnet.Scenario{Clock: c, Rules: []faultnet.Rule{{Fault: test.fault, Optional: true}}})
				u := newTestClient(t, network.Wrap(&rest.Config{Host: server.URL}))
				got := make(chan string, 1)
				go func() { got <- u.send(http.MethodPatch, objectPath) }()
				waitForTimer(t, c)
				c.Step(faultnet.LongestDelay - 1)
				select {
				case early := <-got:
					t.Fatalf("early: %s", early)
				case <-time.After(10 * time.Millisecond):
				}
				want := test.want
				if ends == "the test" {
					want = "error"
					w.runCleanups()
				} else {
					c.Step(1)
				}
				if last := <-got; last != want {
					t.Errorf("got %q, want %q", last, want)
				}
			})
		}
	}
}

// waitForTimer waits until a goroutine waits for the clock.
func waitForTimer(t *testing.T, c *testingclock.FakeClock) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !c.HasWaiters() {
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal("no goroutine waits for the clock")
		}
	}
}
