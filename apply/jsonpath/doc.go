// SPDX-License-Identifier: Apache-2.0

// Package jsonpath reads values out of Kubernetes objects by the JSON paths that deploy items contain, in exports and
// in readiness checks. It is k8s.io/client-go/util/jsonpath with three differences. A path is checked when it is
// parsed, not when it is used. A text that is not a path (a constant, a range, several actions) is refused. A path
// that finds nothing is an error instead of an empty result, even if only its filter matches nothing.
//
//	path, err := jsonpath.Parse("status.conditions[?(@.type=='Ready')].status")
//	values, err := path.Find(object) // every value found, or the reason why there is none
//
// Braces and the leading dot are optional: "{.status.phase}", ".status.phase" and "status.phase" are the same path.
// Missing keys are skipped if at least one of several exists: "items[*].name" returns the names that exist.
package jsonpath
