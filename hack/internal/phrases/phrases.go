// SPDX-License-Identifier: Apache-2.0

// Package phrases finds wording that no English text about Kubernetes has, in guides and in Go sources.
package phrases

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// Coined matches one phrase. It may span a line break.
var Coined = regexp.MustCompile(`(?i)\b(?:tells?\s+(?:whether|that|of)|nobody|somebody|whoever|shall|for\s+ever|of\s+(?:ours|yours)|(?:is|are)\s+told)\b|\bnil:`)

// Hit is a phrase in a file.
type Hit struct {
	Line   int
	Phrase string
}

// InGuide returns the phrases of a Markdown text outside code blocks, code spans and quotations.
func InGuide(text string) []Hit {
	return find(1, blank(text, code))
}

// InGo returns the phrases in the comments of a Go file and, with literals, in its strings.
func InGo(text []byte, literals bool) []Hit {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	var hits []Hit
	var comment strings.Builder
	from, next := 0, 0
	flush := func() {
		hits = append(hits, find(from, blank(comment.String(), quoted))...)
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
			if line != next { // another comment, not the next line of the same one
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

// Code blocks, code spans and quotations are not this repository's own words.
var (
	code   = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`|\"[^\"\n]*\"|^>[^\n]*")
	quoted = regexp.MustCompile("`[^`\n]*`|\"[^\"\n]*\"")
)

// blank removes what matches, but keeps the line breaks.
func blank(text string, what *regexp.Regexp) string {
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
