// SPDX-License-Identifier: Apache-2.0

// Package chart makes the Helm charts of deployers: those in charts/, and the one that `deployerkit init` writes. All charts
// have the same templates, which are those of templates/ with the differences between [[ and ]], and the same values, which
// are in values.go: values.yaml, its schema and the table in the README are made of them.
package chart

//go:generate go run ./generate ../..
