// SPDX-License-Identifier: Apache-2.0

// Package porting has skeletons of the four kinds of deployers that were written for Landscaper's own library: they do what
// such a deployer does to its deploy items, and next to nothing besides. docs/porting.md explains how deployers like these
// are ported, and the tests of deployerlib and of test/envtest/porting run them.
//
// [Container], [Helm] and [Mock] are of the job-ID era. [Manifest] is of the annotation era. What they deploy are
// ConfigMaps.
package porting
