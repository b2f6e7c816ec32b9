// SPDX-License-Identifier: Apache-2.0

// Package disks is the example of docs/writing-a-deployer.md: a deployer that
// rents disks in an imaginary cloud. It decodes its configuration, keeps a
// provider status, waits, looks at its target, has a hook, and is woken by the
// cloud. Its test runs it against a real API server.
package disks
