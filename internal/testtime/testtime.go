// SPDX-License-Identifier: Apache-2.0

// Package testtime extends the deadlines of tests while the machine is busy with other work.
package testtime

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"
)

// most is the maximum factor by which a deadline is extended.
const most = 20

// ScaleTimeout returns the time that a test should allow for an operation that takes d on an idle machine. It
// multiplies d by the number of runnable threads per processor, and returns at least d and at most 20 times d. If the
// system does not report the number of runnable threads, ScaleTimeout returns d.
func ScaleTimeout(d time.Duration) time.Duration {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return d
	}
	return time.Duration(float64(d) * loadFactor(load, runtime.NumCPU()))
}

// loadFactor returns the number of runnable threads per processor, but at least 1 and at most `most`. The content of
// /proc/loadavg, load, contains the average number of runnable threads during the last minute and the current number,
// and loadFactor uses the greater one. If load cannot be parsed, loadFactor returns 1.
func loadFactor(load []byte, processors int) float64 {
	var minute, five, fifteen, now float64
	load, _, _ = bytes.Cut(load, []byte("/"))
	if _, err := fmt.Sscan(string(load), &minute, &five, &fifteen, &now); err != nil {
		return 1
	}
	return min(max(1, max(minute, now)/float64(processors)), most)
}
