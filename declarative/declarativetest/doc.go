// SPDX-License-Identifier: Apache-2.0

// Package declarativetest tests handlers of package declarative without a cluster. Import it in tests only.
//
//	item := declarativetest.Item(t, "shop", "web", Config{Replicas: 3})
//	plan, err := declarativetest.Run(t.Context(), handler, options, item, observed...)
//	cmp.Diff([]string{"create Deployment.apps shop/web", "delete Service shop/old"}, plan.Steps())
//
// [Run] calls the handler once, checks its answer as the deployer does, and compares it with the observed children: the
// [Plan] is what the deployer would do. Plan.Observed are the children as they are after that, for the next call:
//
//	again, err := declarativetest.Run(t.Context(), handler, options, item, plan.Observed...)
//	// again.Steps() is empty: a second call with the same input changes nothing
//
// [CheckPure] calls the handler many times with the same input, with the children in another order each time, and later
// and later by the clock: whatever the answer depends on beside the input shows.
//
// What only an API server knows is not in a plan: defaults, schemas, webhooks, fields of other owners. Fields are compared
// if the handler wants them; lists of objects are matched by the fields that mostly identify their elements (name, port
// and so on). For the whole truth run the deployer against an API server.
package declarativetest
