// SPDX-License-Identifier: Apache-2.0

// Package docs holds no code: it is the home of the guides, and of the tests
// that keep them true. Each promise of behaviours.md is named by a test, each
// relative link leads somewhere, and each Go block of a markdown file is
// copied from a Go file that is compiled.
package docs

//go:generate go run ./internal/behaviours/generate behaviours.md
