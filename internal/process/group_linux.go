// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// endWithParent makes the kernel end the child with this process.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
