// SPDX-License-Identifier: Apache-2.0

// Package jsonpath reads values out of Kubernetes objects by the JSON paths
// that deploy items carry, in exports and in readiness checks. It is
// k8s.io/client-go/util/jsonpath with three differences: a path is checked when
// it is parsed and not when it is used, a text that is no path (a constant, a
// range, several actions) is refused, and a path that finds nothing says so
// instead of giving an empty result, also for a filter that matches nothing.
//
//	path, err := jsonpath.Parse("status.conditions[?(@.type=='Ready')].status")
//	values, err := path.Find(object) // every value found, or why there is none
//
// Braces and the leading dot are optional: "{.status.phase}", ".status.phase"
// and "status.phase" are the same path. Missing keys are skipped as long as one
// of several is found: "items[*].name" gives the names that exist.
package jsonpath
