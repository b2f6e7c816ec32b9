// SPDX-License-Identifier: Apache-2.0

// Package markdown finds the parts of a markdown file that can be checked: relative links ([FindBrokenLinks])
// and Go code ([FindGoBlocks], [IsCopied]).
package markdown
