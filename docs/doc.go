// SPDX-License-Identifier: Apache-2.0

// Package docs contains the guides and the tests that check them. In the tests, each relative link must lead to an
// existing file and heading, and each Go block of a markdown file must be a copy of code in a Go file that is
// compiled.
package docs
