// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import "syscall"

// withParent can do nothing here.
func withParent(*syscall.SysProcAttr) {}
