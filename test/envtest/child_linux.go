// SPDX-License-Identifier: Apache-2.0

package envtest

import "syscall"

// childAttributes let the kernel end the child with us, and keep a terminal's Ctrl-C from it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
