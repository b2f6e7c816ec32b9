// SPDX-License-Identifier: Apache-2.0

// Package docs has no code. It contains the guides and the tests that check them: each relative link must lead to a
// file and a heading, and each Go block of a markdown file must be copied from a Go file that is compiled.
package docs
