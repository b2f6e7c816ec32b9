// SPDX-License-Identifier: Apache-2.0

// Package landscapertest is the test kit for deployers and for the library
// itself. Import it in tests only.
//
//   - [Fake] is a deployer that does what a test tells it and remembers every call.
//   - [Recorder] gives hooks that record what they were called with.
//   - [Trace] writes down the steps of each pass, for golden files ([Golden]).
//   - [Landscaper] plays Landscaper: it creates items, hands out jobs, interrupts,
//     deletes and enforces the timeouts of both revisions of the contract. It
//     also installs an Installation with an inline blueprint.
//   - [Idempotent] proves that a patch function may be called again.
//   - [StartManager] runs a deployer in a manager that ends with the test.
//
// Package faultnet counts the requests of a deployer and makes them fail.
//
// A test against a real API server needs little more than this:
//
//	fake := landscapertest.NewFake()
//	landscapertest.StartManager(t, cfg, deployerlib.DeployerArgs{Type: "example.com/my", Deployer: fake})
//	ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{})
//	di := ls.Item("default", "a", "example.com/my", config)
//	if err := ls.Deploy(ctx, di); err != nil { … }
//	done, err := ls.AwaitFinished(ctx, client.ObjectKeyFromObject(di))
package landscapertest
