// SPDX-License-Identifier: Apache-2.0

// Package declarativetest tests handlers of package declarative without a cluster. Import it in tests only.
//
//	item := declarativetest.Item(t, "shop", "web", Config{Replicas: 3})
//	plan, err := declarativetest.Run(t.Context(), handler, options, item, observed...)
//	cmp.Diff([]string{"create Deployment.apps shop/web", "delete Service shop/old"}, plan.Steps())
//
// [Run] calls the handler once, checks its response as the deployer does, and compares it with the observed children.
// The [Plan] that it returns is what the deployer would do. Plan.Observed holds the children as they are afterwards,
// for the next call:
//
//	again, err := declarativetest.Run(t.Context(), handler, options, item, plan.Observed...)
//	// again.Steps() is empty: a second call with the same input changes nothing
//
// [CheckPure] calls the handler many times with the same input. Each call gets the children in another order, at a
// later time. It finds handlers whose response depends on anything besides the input.
//
// A plan does not contain what only an API server knows, such as defaults, schemas, webhooks and fields of other
// owners. Only the fields that the handler wants are compared. Elements of lists of objects are matched by the fields
// that usually identify them, such as name and port. To test everything, run the deployer against an API server.
package declarativetest
