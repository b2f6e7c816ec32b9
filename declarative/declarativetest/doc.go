// SPDX-License-Identifier: Apache-2.0

// Package declarativetest tests handlers of package declarative without a cluster. Import it in tests only.
//
//	item := declarativetest.NewItem(t, "shop", "web", Config{Replicas: 3})
//	plan, err := declarativetest.Run(t.Context(), handler, options, item, observed...)
//	cmp.Diff([]string{"create Deployment.apps shop/web", "delete Service shop/old"}, plan.ListSteps())
//
// [Run] calls the handler once, checks the response in the same way as the deployer, and compares the response with the
// observed children. It returns a [Plan], which describes what the deployer would do. Plan.Observed contains the
// children as they would be afterwards. Use them for the next call:
//
//	again, err := declarativetest.Run(t.Context(), handler, options, item, plan.Observed...)
//	// again.ListSteps() is empty: a second call with the same input changes nothing
//
// [CheckPure] calls the handler many times with the same input. The order of the children and the current time differ
// from call to call. CheckPure detects handlers whose response depends on anything other than the input.
//
// The code of the deployer computes the plan against an in-memory cluster that contains the observed children. The
// managedFields of the children in Plan.Observed record which fields the deployer has set, so that the next plan
// removes a field that the handler no longer returns. If a child has no managedFields, all of its fields count as set
// by other clients.
//
// A plan does not include effects that only a real API server has, such as defaults, most validation, webhooks and
// immutable fields. For built-in kinds, fields are checked and lists are merged according to the schema. For other
// kinds, lists are compared as a whole. To test everything, run the deployer against an API server.
package declarativetest
