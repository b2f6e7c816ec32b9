// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// attributes lets the kernel end the child with us, and keep a terminal's Ctrl-C from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
