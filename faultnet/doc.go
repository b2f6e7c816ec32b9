// SPDX-License-Identifier: Apache-2.0

// Package faultnet injects faults into the connections between a client and API servers. A script determines the
// faults, or they are chosen at random from a seed. The package does not depend on Landscaper, and can be used to test
// any Kubernetes client. Import it only in tests.
//
//   - [Start] runs a [Scenario] and returns the [Network] that implements it.
//   - [Counter] counts requests to an API server and can make them fail.
//   - Package hostile provides a hostile API server.
//
// A [Scenario] is a list of rules. The [Match] of a [Rule] selects requests, and the rule counts them. Beginning with
// request number Nth, the rule applies its [Fault] to as many requests as Times specifies. If Chance is set, the rule
// applies the fault to each request only with this probability. The Seed of the scenario determines the random numbers.
//
//	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{
//		{Match: faultnet.Match{Verb: "patch", Subresource: "status"}, Times: 3, Fault: faultnet.Conflict()},
//		{Match: faultnet.Match{Verb: "get"}, Nth: 2, Fault: faultnet.Stale(1)},
//	}})
//	c, err := client.New(network.Wrap(cfg), client.Options{})
//
// The faults are:
//
//   - responses that do not come from the API server: [Status], [Conflict], [TokenExpired], [WebhookDenied], [WebhookFailed],
//     and [NewFault] for any [Injector];
//   - connection faults: [Reset] before the request takes effect, [DropResponse] after the request takes effect,
//     [Timeout] and [Delay];
//   - stale data: [Stale] for reads, [ReplayWatch] and [DelayWatchEvents] for watches, and [DropWatch];
//   - the end of the process: [KillBefore] and [KillAfter].
//
// Use [Network.Wrap] and [Network.Transport] for clients in the process of the test, and [Network.Proxy] for programs
// that run in other processes. The test fails if a rule had no effect, unless the rule is Optional. To switch a fault
// on and off during a test, use [Counter.SetInjector].
package faultnet
