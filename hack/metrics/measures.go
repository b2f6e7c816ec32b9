// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// measure is a measured value. It also contains the limit and the largest entries.
type measure struct {
	name     string
	got, aim int     // aim is the limit; 0 means that there is no limit
	worst    []entry // largest first
}

// entry is one number that contributes to a measure, such as the number of methods of one type.
type entry struct {
	what string
	n    int
}

// shown is the maximum number of entries that are printed.
const shown = 8

func (m measure) print(w io.Writer) {
	mark, limit := "ok  ", fmt.Sprintf("at most %5d", m.aim)
	switch {
	case m.aim == 0:
		mark, limit = "    ", strings.Repeat(" ", len(limit))
	case m.got > m.aim:
		mark = "OVER"
	}
	fmt.Fprintf(w, "%s  %6d  %s  %s\n", mark, m.got, limit, m.name)
	for _, e := range m.worst[:min(shown, len(m.worst))] {
		if e.n > 0 {
			fmt.Fprintf(w, "      %6d    %s\n", e.n, e.what)
		}
	}
}

var (
	// configuration matches the names of structs whose number of fields is not limited.
	configuration = regexp.MustCompile(`(?:Args|Options|Config|Configuration|Flags|Spec)$`)
	// notPublic matches the packages whose exported names are not counted. These are test kits and packages that other
	// modules do not import.
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
		greatest("exported names of one package", 100, exported),
		greatest("lines of code of one package", 3400, lines),
		{name: "files in the repository", got: r.files},
		sum("exported names outside the test kits", 0, exported),
		sum("lines of code", 0, lines),
		sum("coined phrases in comments", 39, comments),
		sum("coined phrases in guides", 19, guides),
	}
}

// isPublic reports whether the exported names of a package are meant for other modules.
func isPublic(dir string, p *pkg) bool {
	return !p.main && !notPublic.MatchString(dir)
}

// methods returns the methods of a type, including methods that are promoted from embedded types of this repository.
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

// greatest returns a measure whose value is the largest entry. It lists the entries above the limit. If no entry is
// above the limit, it lists the largest entry.
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

// sum returns a measure whose value is the sum of all entries.
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
