// SPDX-License-Identifier: Apache-2.0

// Package jsondiff compares, merges and copies decoded JSON values.
//
// Its functions accept plain JSON values, which are nil, bool, string, int64, float64, []any and map[string]any. They
// do not change their arguments, except DropNulls and DropListNulls. They report the numbers 1 and 1.0 as equal.
package jsondiff
