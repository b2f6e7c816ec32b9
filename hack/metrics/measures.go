// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
)

// measure is a value, its limit, and the entries of which it consists.
type measure struct {
	name     string
	got, aim int
	worst    []entry // largest first
}

// entry is a part of a measure.
type entry struct {
	what string
	n    int
}

// shown limits the entries that are printed.
const shown = 8

func (m measure) print(w io.Writer) {
	mark := "ok  "
	if m.got > m.aim {
		mark = "OVER"
	}
	fmt.Fprintf(w, "%s  %6d  at most %5d  %s\n", mark, m.got, m.aim, m.name)
	for _, e := range m.worst[:min(shown, len(m.worst))] {
		if e.n > 0 {
			fmt.Fprintf(w, "      %6d    %s\n", e.n, e.what)
		}
	}
}

var (
	// configuration matches the names of structs that may have any number of fields.
	configuration = regexp.MustCompile(`(?:Args|Options|Config|Configuration|Flags|Spec)$`)
	// notPublic matches the packages whose exported names are not counted: test kits and packages that are not
	// libraries.
	notPublic = regexp.MustCompile(`(?:^|/)(?:deployertest|declarativetest|faultnet|landscapertest|internal)(?:/|$)|^(?:cmd|examples|hack|test)/`)
)

func (r *repository) measures() []measure {
	var methods, fields, files, exported, lines, comments, guides []entry
	for dir, p := range r.packages {
		for name, t := range p.types {
			at := dir + "." + name
			methods = append(methods, entry{at, len(r.methods(reference{dir, name}, map[reference]bool{}))})
			if !configuration.MatchString(name) {
				fields = append(fields, entry{at, t.fields})
			}
		}
		files = append(files, entry{dir, p.files})
		lines = append(lines, entry{dir, p.lines})
		if isPublic(dir, p) {
			exported = append(exported, entry{dir, len(p.exported)})
		}
		for file, n := range p.phrases {
			comments = append(comments, entry{file, n})
		}
	}
	for file, n := range r.guides {
		guides = append(guides, entry{file, n})
	}
	return []measure{
		greatest("methods of one type", 30, methods),
		greatest("fields of one struct", 18, fields),
		greatest("files of one package", 25, files),
		{name: "files in the repository", got: r.files, aim: 1100},
		sum("exported names outside the test kits", 460, exported),
		sum("lines of code", 34500, lines),
		sum("coined phrases in comments", 39, comments),
		sum("coined phrases in guides", 19, guides),
	}
}

// isPublic reports whether the exported names of a package are for other modules.
func isPublic(dir string, p *pkg) bool {
	return !p.main && !notPublic.MatchString(dir)
}

// methods returns the methods of a type, including those that embedded types of this repository promote.
func (r *repository) methods(at reference, seen map[reference]bool) map[string]bool {
	out := map[string]bool{}
	p := r.packages[path.Clean(at.dir)]
	if p == nil || p.types[at.name] == nil || seen[at] {
		return out
	}
	seen[at] = true
	t := p.types[at.name]
	for name := range t.methods {
		out[name] = true
	}
	for _, e := range t.embedded {
		for name := range r.methods(e, seen) {
			out[name] = true
		}
	}
	return out
}

// greatest returns the measure of the largest entry. It lists only the entries above the limit, or the largest one.
func greatest(name string, aim int, entries []entry) measure {
	sort(entries)
	m := measure{name: name, aim: aim}
	if len(entries) > 0 {
		m.got = entries[0].n
	}
	over := slices.IndexFunc(entries, func(e entry) bool { return e.n <= aim })
	if over < 0 {
		over = len(entries)
	}
	m.worst = entries[:min(max(1, over), len(entries))]
	return m
}

// sum returns the measure of the sum of all entries.
func sum(name string, aim int, entries []entry) measure {
	sort(entries)
	m := measure{name: name, aim: aim, worst: entries}
	for _, e := range entries {
		m.got += e.n
	}
	return m
}

func sort(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.what, b.what)) })
}
