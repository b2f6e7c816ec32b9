// SPDX-License-Identifier: Apache-2.0

// Package chart generates the Helm charts of deployers: those in charts/, and the one that `deployerkit init` creates.
// All charts have the same templates, which are in templates/ with the differences between [[ and ]], and the same
// values, which are in values.go. values.yaml, its schema and the table in the README are generated from them.
package chart

//go:generate go run ./generate ../..
