// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command that is not started yet the leader of a process group.
func ownGroup(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
	withParent(command.SysProcAttr)
}

// signalGroup sends a signal to a command and all that it started.
func signalGroup(command *exec.Cmd, signal syscall.Signal) error {
	return syscall.Kill(-command.Process.Pid, signal)
}
