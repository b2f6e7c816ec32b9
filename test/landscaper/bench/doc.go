// SPDX-License-Identifier: Apache-2.0

// Package bench runs the scenarios of package scenario with Landscaper's own mock and manifest deployers and with
// those of this module, and compares what each writes and how long it takes:
//
//	make bench BENCH=Landscaper
package bench
