// SPDX-License-Identifier: Apache-2.0

// Package ui tests the page of `deployerkit ui` in a headless Chromium, with real deployers on a real API server. It is a
// module of its own, so that the library does not depend on the packages that control the browser.
package ui
