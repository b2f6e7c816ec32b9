// SPDX-License-Identifier: Apache-2.0

// Package disks is the example of docs/writing-a-deployer.md: a deployer that rents disks in an imaginary cloud. The
// deployer decodes its configuration, stores a provider status, waits for its disk, reads its target and registers a
// hook. The cloud triggers reconciles of the items. The test of the package runs the deployer with a real API server.
package disks
