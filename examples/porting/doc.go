// SPDX-License-Identifier: Apache-2.0

// Package porting contains skeletons of four deployers that were written for Landscaper's own library. The skeletons
// handle their deploy items like the real deployers, but they deploy only ConfigMaps. docs/porting.md explains how to
// port such deployers. The tests of deployerlib and of test/envtest/porting run the skeletons.
//
// [Container], [Helm] and [Mock] are for the job-ID revision, and [Manifest] is for the annotation revision.
package porting
