// SPDX-License-Identifier: Apache-2.0

// Package chart generates the Helm charts of deployers: the charts in charts/, and the chart that `deployerkit init`
// creates. All charts are generated from the templates in templates/. The parts that differ between charts are enclosed
// in [[ and ]]. The values of all charts are listed in values.go. From this list, the package generates values.yaml,
// its schema and the table in the README.
package chart

//go:generate go run ./generate ../..
