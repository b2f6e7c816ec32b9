// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import "syscall"

// endWithParent does nothing, because these systems cannot end a child together with its parent. Instead, the programs
// that this module builds detect themselves that their parent has ended.
func endWithParent(*syscall.SysProcAttr) {}
