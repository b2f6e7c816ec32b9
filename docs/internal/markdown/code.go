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
	// Code contains the lines of the block.
	Code []string
}

// FindGoBlocks returns the blocks of Go code in a document.
func FindGoBlocks(doc string) []Block { return FindBlocks(doc, "go", "golang") }

// FindBlocks returns the code blocks of a document that are in one of the given languages.
func FindBlocks(doc string, languages ...string) []Block {
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

// IsCopied reports whether source contains the code unchanged. The copy may be indented, if all lines have the same
// additional indentation.
func IsCopied(code []string, source string) bool {
	if len(code) == 0 {
		return false
	}
	lines := strings.Split(source, "\n")
	for i := range lines {
		if indent, ok := strings.CutSuffix(lines[i], code[0]); ok && strings.Trim(indent, "\t ") == "" && matchLines(lines[i:], code, indent) {
			return true
		}
	}
	return false
}

// matchLines reports whether lines are the lines of the code with the given indentation. Empty lines need not be
// indented.
func matchLines(lines, code []string, indent string) bool {
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
