// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package envtest

import "syscall"

// childAttributes is nothing here: the binaries that we build notice the end of their parent themselves.
func childAttributes() *syscall.SysProcAttr { return nil }
