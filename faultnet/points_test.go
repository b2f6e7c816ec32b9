// SPDX-License-Identifier: Apache-2.0

package faultnet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/faultnet"
)

// sendRequests sends writes, reads and a watch, and returns the responses.
func sendRequests(u *testClient) []string {
	got := []string{}
	for _, step := range []string{"GET " + objectPath, "PATCH " + objectPath, "GET " + listPath, "GET " + objectPath, "POST " + listPath, "GET " + objectPath} {
		method, path, _ := strings.Cut(step, " ")
		got = append(got, u.send(method, path))
	}
	return append(got, u.watch(3, ""))
}

// TestPoints checks that a run with RecordPoints collects all points, and that each fault hits the same point in
// another run.
func TestPoints(t *testing.T) {
	for way, through := range ways {
		t.Run(way, func(t *testing.T) {
			begin := func(s faultnet.Scenario) (*faultnet.Network, *testClient) {
				n := faultnet.Start(t, s)
				return n, newTestClient(t, through(n, &rest.Config{Host: newFakeServer(t).URL}))
			}
			network, u := begin(faultnet.Scenario{RecordPoints: true})
			sendRequests(u)
			got := []string{}
			for _, p := range network.Report().Points {
				line := fmt.Sprintf("%s: %v", p, p.SelectFaults())
				for _, fault := range p.SelectFaults() {
					network, u := begin(faultnet.Scenario{Rules: []faultnet.Rule{p.NewRule(fault)}})
					line += fmt.Sprintf("; %v", sendRequests(u))
					if !p.WasHit(network.Report()) {
						t.Errorf("%s: %s did not hit it: %+v", p, fault, network.Report())
					}
				}
				got = append(got, line)
			}
			const all, first, last = "[404 200 v1 200 ", "[404 error error error error error error]", "[404 200 v1 200 "
			list := `{"metadata":{"resourceVersion":"1"},"items":["v1"]} `
			want := []string{
				"get configmaps a #1: []",
				"patch configmaps a #1: [killed before it took effect killed after it took effect]; " + first + "; " + first,
				"list configmaps #1: []",
				"get configmaps a #2: [stale by 1 responses]; " + all + list + "404 200 v2 200 v2 e1 e2 e3]",
				"create configmaps #1: [killed before it took effect killed after it took effect]; " +
					last + list + "200 v1 error error error]; " + last + list + "200 v1 error error error]",
				"get configmaps a #3: [stale by 1 responses]; " + all + list + "200 v1 200 v2 200 v1 e1 e2 e3]",
				"watch configmaps #1: [replayed after 1 events stalled for 300ms after 1 events replayed after 2 events stalled for 300ms after 2 events]; " +
					all + list + "200 v1 200 v2 200 v2 e1 e1 e2]; " + all + list + "200 v1 200 v2 200 v2 e1 e2 e3]; " +
					all + list + "200 v1 200 v2 200 v2 e1 e2 e1]; " + all + list + "200 v1 200 v2 200 v2 e1 e2 e3]",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestPointOfAnotherNamespace checks that a point can be found again in a run that uses another namespace.
func TestPointOfAnotherNamespace(t *testing.T) {
	p := faultnet.Point{Request: faultnet.Request{Verb: "create", Resource: "configmaps", Namespace: "one"}, Nth: 2}
	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{p.NewRule(faultnet.Conflict())}})
	u := newTestClient(t, network.Wrap(&rest.Config{Host: newFakeServer(t).URL}))
	got := []string{u.send("POST", "/api/v1/namespaces/two/configmaps"), u.send("POST", objectPath), u.send("POST", "/api/v1/namespaces/two/configmaps")}
	if !p.WasHit(network.Report()) || got[0] != "200 v1" || got[1] != "200 v2" || !strings.HasPrefix(got[2], "409") {
		t.Errorf("got %v, want a conflict at the third: the second names an object", got)
	}
	if p.Request.Namespace = ""; p.WasHit(faultnet.Report{}) {
		t.Error("Hit of an empty report: got true")
	}
}

// TestAlias checks that an alias makes it possible to find an object again whose name differs between runs.
func TestAlias(t *testing.T) {
	begin := func(s faultnet.Scenario) (*faultnet.Network, *testClient) {
		n := faultnet.Start(t, s)
		return n, newTestClient(t, n.Wrap(&rest.Config{Host: newFakeServer(t).URL}))
	}
	network, u := begin(faultnet.Scenario{RecordPoints: true, Alias: func(r faultnet.Request) string { return strings.TrimRight(r.Name, "0123456789") }})
	u.send("PATCH", listPath+"/a17")
	u.send("PATCH", listPath+"/a18")
	points := network.Report().Points
	if len(points) != 2 || points[1].String() != "patch configmaps a #2" {
		t.Fatalf("points = %v, want the second to be %q", points, "patch configmaps a #2")
	}
	network, u = begin(faultnet.Scenario{Rules: []faultnet.Rule{points[1].NewRule(faultnet.Conflict())}})
	got := []string{u.send("PATCH", listPath+"/a3"), u.send("PATCH", listPath+"/b4"), u.send("PATCH", listPath+"/a5")}
	if !points[1].WasHit(network.Report()) || got[1] != "200 v2" || !strings.HasPrefix(got[2], "409") {
		t.Errorf("got %v, want a conflict at the third", got)
	}
}
