// SPDX-License-Identifier: Apache-2.0

// Package docs has no code. It is the home of the guides and of the tests that keep them true: each relative link leads to
// a file and a heading, and each Go block of a markdown file is copied from a Go file that is compiled.
package docs
