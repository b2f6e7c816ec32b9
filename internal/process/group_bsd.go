// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import "syscall"

// endWithParent does nothing. The programs that we build notice the end of their parent themselves.
func endWithParent(*syscall.SysProcAttr) {}
