// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package controlplane

// killChildren does nothing. It returns false, because it is implemented only for Linux.
func killChildren(string) bool { return false }

// killAbandoned does nothing, because it is only implemented for Linux.
func killAbandoned(string) {}
