// SPDX-License-Identifier: Apache-2.0

// Package testtime stretches the deadlines of tests on a machine that is busy with other work.
package testtime

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"
)

// most bounds how much longer a deadline becomes.
const most = 20

// Stretch returns how long a test should allow for what takes d on an idle machine: d times the threads that want
// to run per processor, at most 20 times d. Where the system does not say how many threads there are, it returns d.
func Stretch(d time.Duration) time.Duration {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return d
	}
	return time.Duration(float64(d) * factor(load, runtime.NumCPU()))
}

// factor returns the number of runnable threads per processor: the average of the last minute or the current number,
// whichever is greater.
func factor(load []byte, processors int) float64 {
	var minute, five, fifteen, now float64
	load, _, _ = bytes.Cut(load, []byte("/"))
	if _, err := fmt.Sscan(string(load), &minute, &five, &fifteen, &now); err != nil {
		return 1
	}
	return min(max(1, max(minute, now)/float64(processors)), most)
}
