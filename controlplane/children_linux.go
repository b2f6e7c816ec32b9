// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// killChildren kills each child of this process that has dir in its command line. It returns true, because it is
// implemented for Linux.
func killChildren(dir string) bool {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join(path, "cmdline"))
		if err == nil && bytes.Contains(line, []byte(dir)) && parentOf(path) == os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended already
		}
	}
	return true
}

// parentOf returns the process ID of the parent of a process, or 0 if the process does not exist. The argument is the
// /proc directory of the process.
func parentOf(path string) int {
	stat, err := os.ReadFile(filepath.Join(path, "stat"))
	if err != nil {
		return 0
	}
	parent, state := 0, ""
	_, after, _ := bytes.Cut(stat, []byte(") ")) // skips the name, which may contain spaces
	_, _ = fmt.Sscan(string(after), &state, &parent)
	return parent
}
