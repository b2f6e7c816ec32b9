// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"slices"
	"strings"
)

// Block is a code block of a markdown file.
type Block struct {
	// Line is the number of the first line of the code, counted from 1.
	Line int
	// Code is the lines of the block.
	Code []string
}

// GoBlocks returns the blocks of Go code of a document.
func GoBlocks(doc string) []Block { return Blocks(doc, "go", "golang") }

// Blocks returns the blocks of a document in one of the languages.
func Blocks(doc string, languages ...string) []Block {
	var blocks []Block
	var current *Block
	for i, line := range strings.Split(doc, "\n") {
		fence := strings.TrimSpace(line)
		language, begins := strings.CutPrefix(fence, "```")
		switch {
		case current == nil && begins && slices.Contains(languages, language):
			current = &Block{Line: i + 2}
		case current != nil && fence == "```":
			blocks = append(blocks, *current)
			current = nil
		case current != nil:
			current.Code = append(current.Code, line)
		}
	}
	return blocks
}

// Copied reports whether the code is contained in source unchanged, apart from an indentation that all of its lines
// share.
func Copied(code []string, source string) bool {
	if len(code) == 0 {
		return false
	}
	lines := strings.Split(source, "\n")
	for i := range lines {
		if indent, ok := strings.CutSuffix(lines[i], code[0]); ok && strings.Trim(indent, "\t ") == "" && same(lines[i:], code, indent) {
			return true
		}
	}
	return false
}

// same compares line by line. Empty lines need no indentation.
func same(lines, code []string, indent string) bool {
	if len(lines) < len(code) {
		return false
	}
	for i, want := range code {
		if want != "" {
			want = indent + want
		}
		if lines[i] != want {
			return false
		}
	}
	return true
}
