// SPDX-License-Identifier: Apache-2.0

// Package phrases searches guides and Go files for unwanted phrases, which are unusual in English texts about
// Kubernetes.
package phrases

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// Coined matches an unwanted phrase. A match may span a line break.
var Coined = regexp.MustCompile(`(?i)\b(?:tells?\s+(?:whether|that|of)|nobody|somebody|whoever|shall|for\s+ever|of\s+(?:ours|yours)|(?:is|are)\s+told)\b|\bnil:`)

// Hit is a phrase in a file.
type Hit struct {
	Line   int
	Phrase string
}

// FindInGuide returns the unwanted phrases in a Markdown text. It ignores code blocks, code spans and quotations.
func FindInGuide(text string) []Hit {
	return find(1, removeMatches(text, code))
}

// FindInGo returns the unwanted phrases in the comments of a Go file. If literals is true, it also checks the string
// literals.
func FindInGo(text []byte, literals bool) []Hit {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	var hits []Hit
	var comment strings.Builder
	from, next := 0, 0
	flush := func() {
		hits = append(hits, find(from, removeMatches(comment.String(), quoted))...)
		comment.Reset()
	}
	for {
		pos, kind, literal := s.Scan()
		line := file.Line(pos)
		if kind != token.COMMENT && (kind != token.SEMICOLON || literal != "\n") {
			flush()
		}
		switch {
		case kind == token.COMMENT:
			if line != next { // the line belongs to another comment
				flush()
				from = line
			}
			comment.WriteString(strings.TrimPrefix(literal, "//") + "\n")
			next = line + strings.Count(literal, "\n") + 1
		case kind == token.STRING && literals:
			hits = append(hits, find(line, literal)...)
		case kind == token.EOF:
			return hits
		}
	}
}

// These expressions match code blocks, code spans and quotations, in which the phrases are allowed.
var (
	code   = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`|\"[^\"\n]*\"|^>[^\n]*")
	quoted = regexp.MustCompile("`[^`\n]*`|\"[^\"\n]*\"")
)

// removeMatches removes all matches of the regular expression from the text. It keeps the line breaks in the matches.
func removeMatches(text string, what *regexp.Regexp) string {
	return what.ReplaceAllStringFunc(text, func(match string) string { return strings.Repeat("\n", strings.Count(match, "\n")) })
}

func find(first int, text string) []Hit {
	var hits []Hit
	for _, at := range Coined.FindAllStringIndex(text, -1) {
		phrase := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
		hits = append(hits, Hit{Line: first + strings.Count(text[:at[0]], "\n"), Phrase: phrase})
	}
	return hits
}
