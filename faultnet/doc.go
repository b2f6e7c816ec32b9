// SPDX-License-Identifier: Apache-2.0

// Package faultnet puts a network between a client and its API servers that
// fails by a script or by a seed. It knows nothing of Landscaper and tests any
// client of Kubernetes. Import it in tests only.
//
//   - [Start] runs a [Scenario] and returns the [Network] that does what the scenario says.
//   - [Counter] counts requests to an API server and can make them fail.
//   - Package hostile, below this one, is an API server that does harm.
//
// A [Scenario] is a list of rules. A [Rule] counts the requests that its
// [Match] is for and does a [Fault] to the Nth of them and the ones after it,
// Times times, or to each with a Chance that the seed of the scenario decides.
//
//	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{
//		{Match: faultnet.Match{Verb: "patch", Subresource: "status"}, Times: 3, Fault: faultnet.Conflict()},
//		{Match: faultnet.Match{Verb: "get"}, Nth: 2, Fault: faultnet.Stale(1)},
//	}})
//	c, err := client.New(network.Wrap(cfg), client.Options{})
//
// The faults are:
//
//   - answers in the API server's place: [Status], [Conflict], [ExpiredToken], [Denied], [BrokenWebhook], and [InPlace] for any [Injector];
//   - of the connection: [Reset] before the request took effect, [LostAnswer] after it, [Timeout], [Delay];
//   - the past: [Stale] for reads, [ReplayWatch] and [StallWatch] for watches, and [CutWatch];
//   - the end of the process: [KillBefore] and [KillAfter].
//
// [Network.Wrap] and [Network.Transport] are for clients in the test's own
// process, [Network.Proxy] for programs. A rule that did nothing fails the
// test. [Counter.Inject] is for tests that switch a fault on and off as they go.
package faultnet
