// SPDX-License-Identifier: Apache-2.0

// Package release renders Helm charts and stores the records of Helm releases. It is the only package of the deployer
// that imports Helm. From Helm it takes the formats: charts, values, templates and release records. It does not use
// Helm's actions, because these hold a goroutine until an operation has ended, and cannot be cancelled.
//
// [Load] interprets the files of a chart. A [Renderer] renders a chart within limits of time and size. Its result
// contains the objects, the hooks and the CustomResourceDefinitions of the chart.
package release
