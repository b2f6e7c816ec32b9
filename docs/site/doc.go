// SPDX-License-Identifier: Apache-2.0

// Package site contains the templates with which Hugo builds the site of the guides, and the tests of the site. The
// tests build it, check all links and anchors, and open pages in a headless Chromium. It is a module of its own, so that
// the library does not depend on the packages that control the browser.
package site
