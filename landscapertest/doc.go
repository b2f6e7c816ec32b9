// SPDX-License-Identifier: Apache-2.0

// Package landscapertest provides test doubles for tests of deployers and of the library itself.
//
//   - [Fake] is a deployer that logs every call. The test defines what each call does.
//   - [Recorder] provides hooks that record their calls.
//   - [Trace] records the steps of each reconcile, for golden files ([CompareGolden]).
//   - [Landscaper] simulates Landscaper in both revisions of the contract. It creates and deletes items, hands out and
//     interrupts jobs, and enforces timeouts. It can also install an Installation with an inline blueprint.
//   - [VerifyIdempotent] checks that a second call of a patch function changes nothing.
//   - [StartManager] runs a deployer in a manager that stops with the test.
//
// Package faultnet counts the requests of a deployer and can make them fail.
//
// A test with a real API server needs little more than this:
//
//	fake := landscapertest.NewFake()
//	landscapertest.StartManager(t, cfg, deployerlib.DeployerArgs{Type: "example.com/my", Deployer: fake})
//	ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{})
//	di := ls.Item("default", "a", "example.com/my", config)
//	if err := ls.Deploy(ctx, di); err != nil { … }
//	done, err := ls.WaitUntilFinished(ctx, client.ObjectKeyFromObject(di))
package landscapertest
