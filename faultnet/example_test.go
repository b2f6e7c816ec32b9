// SPDX-License-Identifier: Apache-2.0

package faultnet_test

import (
	"fmt"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/faultnet"
)

// The Match of a rule selects requests. The rule applies its Fault to some of these requests.
func ExampleRule() {
	rules := []faultnet.Rule{
		{Match: faultnet.Match{Verb: "patch", Resource: "deployitems"}, Times: 3, Fault: faultnet.Conflict()},
		{Match: faultnet.Match{Verb: faultnet.WriteVerb}, Nth: 4, Fault: faultnet.DropResponse()},
		{Match: faultnet.Match{Resource: "configmaps"}, Fault: faultnet.ReplayWatch(2)},
	}
	for _, rule := range rules {
		fmt.Println(rule.Fault)
	}
	// Output:
	// 409 Conflict
	// reset after it took effect
	// replayed after 2 events
}

// TestKillAtEachWrite runs a deployer that makes three writes. Each time, it kills the deployer before or after another
// one of these writes. The guide docs/testing-your-deployer.md shows this code.
func TestKillAtEachWrite(t *testing.T) {
	var server *fakeServer
	run := func(network *faultnet.Network) {
		server = newFakeServer(t)
		deployer := newTestClient(t, network.Wrap(&rest.Config{Host: server.URL}))
		for range 3 {
			deployer.send("PATCH", objectPath)
		}
	}
	check := func(n int, _ faultnet.Fault) {
		if stored := server.countObjects(); stored != n && stored != n-1 {
			t.Errorf("killed at write %d, %d took effect", n, stored)
		}
	}

	writes := faultnet.Match{Verb: faultnet.WriteVerb}
	count := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{{Match: writes}}}) // this rule only counts requests
	run(count)
	for n := 1; n <= count.Report().Rules[0].Matched; n++ {
		for _, kill := range []faultnet.Fault{faultnet.KillBefore(), faultnet.KillAfter()} {
			network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{{Match: writes, Nth: n, Fault: kill}}})
			run(network)
			<-network.Killed()
			check(n, kill)
		}
	}
}
