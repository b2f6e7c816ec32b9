// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// withParent lets the kernel end the child with us.
func withParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
