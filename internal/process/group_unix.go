// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// setProcessGroup makes the process that cmd will start the leader of a process group, so that the process does not
// receive Ctrl-C from a terminal.
func setProcessGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	endWithParent(cmd.SysProcAttr)
}

// signalGroup sends a signal to a command and its children.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, s) }
