// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// killChildren kills each child of this process that has dir in its command line. It returns true, because it is
// implemented for Linux.
func killChildren(dir string) bool {
	killProcesses(dir, func(path, _ string) bool { return getParentPID(path) == os.Getpid() })
	return true
}

// killAbandoned kills the processes of a control plane whose parent has been killed. The processes have `dir`, the
// directory of this control plane, in their command line.
func killAbandoned(dir string) {
	killProcesses(dir, func(_, program string) bool {
		return slices.Contains([]string{apiServerName, etcdName, controllerManagerName}, filepath.Base(program))
	})
}

// killProcesses kills each process that has dir in its command line, and for which the function `match` returns true.
// The arguments of `match` are the /proc directory and the program of the process.
func killProcesses(dir string, match func(path, program string) bool) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join(path, "cmdline"))
		program, arguments, _ := bytes.Cut(line, []byte{0})
		if err == nil && bytes.Contains(arguments, []byte(dir)) && match(path, string(program)) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended already
		}
	}
}

// getParentPID returns the process ID of the parent of a process, or 0 if the process does not exist. The argument is
// the /proc directory of the process.
func getParentPID(path string) int {
	stat, err := os.ReadFile(filepath.Join(path, "stat"))
	if err != nil {
		return 0
	}
	parent, state := 0, ""
	_, after, _ := bytes.Cut(stat, []byte(") ")) // skips the name, which may contain spaces
	_, _ = fmt.Sscan(string(after), &state, &parent)
	return parent
}
