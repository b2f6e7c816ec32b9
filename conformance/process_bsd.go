// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package conformance

import "syscall"

// withParent can do nothing here.
func withParent(*syscall.SysProcAttr) {}
