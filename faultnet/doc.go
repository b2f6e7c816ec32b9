// SPDX-License-Identifier: Apache-2.0

// Package faultnet provides a network between a client and its API servers that fails by a script or by a seed. It does
// not depend on Landscaper and can test any Kubernetes client. Import it only in tests.
//
//   - [Start] runs a [Scenario] and returns the [Network] that implements it.
//   - [Counter] counts requests to an API server and can make them fail.
//   - Package hostile provides a hostile API server.
//
// A [Scenario] is a list of rules. A [Rule] counts the requests that its [Match] selects. It applies a [Fault] to the
// Nth of them and the following ones, Times times, or to each with a Chance that the seed of the scenario decides.
//
//	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{
//		{Match: faultnet.Match{Verb: "patch", Subresource: "status"}, Times: 3, Fault: faultnet.Conflict()},
//		{Match: faultnet.Match{Verb: "get"}, Nth: 2, Fault: faultnet.Stale(1)},
//	}})
//	c, err := client.New(network.Wrap(cfg), client.Options{})
//
// The faults are:
//
//   - responses instead of the API server: [Status], [Conflict], [ExpiredToken], [Denied], [BrokenWebhook], and
//     [InPlace] for any [Injector];
//   - connection faults: [Reset] before the request takes effect, [LostAnswer] after it, [Timeout], [Delay];
//   - stale data: [Stale] for reads, [ReplayWatch] and [StallWatch] for watches, and [CutWatch];
//   - the end of the process: [KillBefore] and [KillAfter].
//
// [Network.Wrap] and [Network.Transport] are for clients in the test's own process, [Network.Proxy] for programs. A
// rule that did nothing fails the test. [Counter.Inject] is for tests that switch a fault on and off.
package faultnet
