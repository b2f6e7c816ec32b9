// SPDX-License-Identifier: Apache-2.0

// Package porting has skeletons of the four kinds of deployers that were written for Landscaper's own library. They
// handle their deploy items like such a deployer, and do little else. docs/porting.md explains how to port deployers
// like these. The tests of deployerlib and of test/envtest/porting run them.
//
// [Container], [Helm] and [Mock] are for the job-ID revision. [Manifest] is for the annotation revision. They deploy
// ConfigMaps.
package porting
