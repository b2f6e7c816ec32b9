// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"os/exec"
	"syscall"
)

// ownGroup does nothing, because there are no process groups.
func ownGroup(*exec.Cmd) {}

// signalGroup sends a signal to a command.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) error {
	if s == syscall.SIGKILL {
		return cmd.Process.Kill()
	}
	return cmd.Process.Signal(s)
}
