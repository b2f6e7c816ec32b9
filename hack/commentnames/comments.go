// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

var (
	dotted = regexp.MustCompile(`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*`)

	// compound matches words that contain a capital letter after a small one, and only letters. Acronyms and words with
	// digits are not checked.
	compound = regexp.MustCompile(`^[A-Za-z]*[a-z][A-Z][A-Za-z]*$`)

	// marked matches a word in brackets or backquotes. IDs such as L15 do not match.
	marked = regexp.MustCompile("^(?:\\[[A-Za-z]*[a-z][A-Za-z]*\\]|`\\w+`)$")
)

// A reference is a word in a comment, with the parts after dots.
type reference struct {
	name     string
	isMarked bool // the word is in brackets or backquotes
}

// findUndeclared returns a line for each name in the comments of a package that nothing declares.
func (r *repository) findUndeclared(p *pkg) []string {
	var out []string
	for _, group := range p.comments {
		for _, comment := range group.List {
			text, isProse := strings.CutPrefix(comment.Text, "// ")
			if !isProse { // a code block, a directive or an empty line
				continue
			}
			for _, ref := range listReferences(text) {
				if !r.isDeclared(p, ref) {
					at := r.files.Position(comment.Pos())
					out = append(out, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, ref.name))
				}
			}
		}
	}
	return out
}

// listReferences returns the words in a text that may be names. It omits parts of paths, URLs and flags, and words in
// quotation marks.
func listReferences(text string) []reference {
	var out []reference
	text = " " + text + " "
	for _, at := range dotted.FindAllStringIndex(text, -1) {
		if strings.ContainsAny(text[at[0]-1:at[0]], `/-"\@%`) || strings.ContainsAny(text[at[1]:at[1]+1], `/-"`) {
			continue
		}
		out = append(out, reference{text[at[0]:at[1]], marked.MatchString(text[at[0]-1 : at[1]+1])})
	}
	return out
}

func (r *repository) isDeclared(p *pkg, ref reference) bool {
	if parts := strings.Split(ref.name, "."); len(parts) > 1 {
		return !ast.IsExported(parts[1]) || r.isSelectorDeclared(p, parts)
	}
	if !ref.isMarked && !compound.MatchString(ref.name) {
		return true
	}
	for _, suffix := range []string{"", "s", "es"} { // the plural of a kind
		if name := strings.TrimSuffix(ref.name, suffix); p.names[name] || r.words[name] {
			return true
		}
	}
	return false
}

// isSelectorDeclared checks a name that consists of a type and a member, or of a package, a name and possibly a member.
func (r *repository) isSelectorDeclared(p *pkg, parts []string) bool {
	if p.top[parts[0]] {
		return p.hasMember(parts[0], parts[1])
	}
	candidates := r.byName[parts[0]]
	for _, q := range candidates {
		if q.top[parts[1]] && (len(parts) == 2 || q.hasMember(parts[1], parts[2])) {
			return true
		}
	}
	return len(candidates) == 0 || p.variables[parts[0]] // another repository declares the package, or it is a variable
}
