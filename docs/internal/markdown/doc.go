// SPDX-License-Identifier: Apache-2.0

// Package markdown finds what can be checked in a markdown file: relative links ([BrokenLinks]) and Go code
// ([GoBlocks], [Copied]).
package markdown
