// SPDX-License-Identifier: Apache-2.0

// Package bench runs the scenarios of package scenario with Landscaper's own mock and manifest deployers and with those
// of this module. For both sides, it compares the numbers of requests and the durations:
//
//	make bench BENCH=Landscaper
package bench
