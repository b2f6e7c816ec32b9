// SPDX-License-Identifier: Apache-2.0

// Package jsonpath reads values from Kubernetes objects by the JSON paths that deploy items contain in their exports
// and readiness checks. It behaves like k8s.io/client-go/util/jsonpath, with three differences. A path is validated
// when it is parsed, not when it is used. Text that is not a single path is rejected, such as a constant, a range or
// several actions. A path that finds nothing causes an error instead of an empty result, even if the reason is a filter
// that matches no item.
//
//	path, err := jsonpath.Parse("status.conditions[?(@.type=='Ready')].status")
//	values, err := path.Find(ctx, object) // every value found, or an error if there is none
//
// Braces and the leading dot are optional: "{.status.phase}", ".status.phase" and "status.phase" are the same path. A
// field that only some of the items have is not an error: "items[*].name" returns the names that exist.
package jsonpath
