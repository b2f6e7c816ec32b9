// SPDX-License-Identifier: Apache-2.0

// Package deployertest is the test kit for deployers and for the library
// itself. Import it in tests only.
//
//   - [Fake] is a deployer that does what a test tells it and remembers every call.
//   - [Recorder] gives hooks that record what they were called with.
//   - [Trace] writes down the steps of each pass, for golden files ([Golden]).
//   - [Landscaper] plays Landscaper: it creates items, hands out jobs, interrupts,
//     deletes and enforces the timeouts of both revisions of the contract.
//   - [Counter] counts requests to an API server and can make them fail.
//   - [Faults] puts a network between a deployer and its API servers that goes wrong by a script or a seed.
//   - [Idempotent] proves that a patch function may be called again.
//   - [StartManager] runs a deployer in a manager that ends with the test.
//
// A test against a real API server needs little more than this:
//
//	fake := deployertest.NewFake()
//	deployertest.StartManager(t, cfg, deployerlib.DeployerArgs{Type: "example.com/my", Deployer: fake})
//	ls := deployertest.NewLandscaper(c, deployertest.LandscaperOptions{})
//	di := ls.Item("default", "a", "example.com/my", config)
//	if err := ls.Deploy(ctx, di); err != nil { … }
//	done, err := ls.AwaitFinished(ctx, client.ObjectKeyFromObject(di))
//
// # Faults
//
// A [Scenario] is a list of rules. A [Rule] counts the requests that its
// [Match] is for and does a [Fault] to the Nth of them and the ones after it,
// Times times, or to each with a Chance that the seed of the scenario decides. [Faults] starts it:
//
//	network := deployertest.Faults(t, deployertest.Scenario{Rules: []deployertest.Rule{
//		{Match: deployertest.Match{Verb: "patch", Subresource: "status"}, Times: 3, Fault: deployertest.Conflict()},
//		{Match: deployertest.Match{Verb: "get"}, Nth: 2, Fault: deployertest.Stale(1)},
//	}})
//	deployertest.StartManager(t, network.Wrap(cfg), args)
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
package deployertest
