// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "syscall"

// attributes returns nil. The programs that we build notice the end of their parent themselves.
func attributes() *syscall.SysProcAttr { return nil }
