// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"os/exec"
	"syscall"
)

// ownGroup can do nothing here.
func ownGroup(*exec.Cmd) {}

// signalGroup sends a signal to a command.
func signalGroup(command *exec.Cmd, signal syscall.Signal) error {
	if signal == syscall.SIGKILL {
		return command.Process.Kill()
	}
	return command.Process.Signal(signal)
}
