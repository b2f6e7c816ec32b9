// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// endWithParent makes the kernel kill the child process when the calling process ends.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
