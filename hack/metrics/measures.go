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

// measure is a measured value. It also contains the largest entries.
type measure struct {
	name  string
	got   int
	worst []entry // largest first
}

// entry is one number that contributes to a measure, such as the number of methods of one type.
type entry struct {
	what string
	n    int
}

// shown is the maximum number of entries that are printed.
const shown = 8

func (m measure) print(w io.Writer) {
	fmt.Fprintf(w, "%8d  %s\n", m.got, m.name)
	for _, e := range m.worst[:min(shown, len(m.worst))] {
		if e.n > 0 {
			fmt.Fprintf(w, "          %8d  %s\n", e.n, e.what)
		}
	}
}

var (
	// configuration matches the names of structs whose number of fields is not measured.
	configuration = regexp.MustCompile(`(?:Args|Options|Config|Configuration|Flags|Spec)$`)
	// notPublic matches the packages whose exported names are not counted. These are test kits and packages that other
	// modules do not import.
	notPublic = regexp.MustCompile(`(?:^|/)(?:declarativetest|faultnet|landscapertest|internal)(?:/|$)|^(?:cmd|examples|hack|test)/`)
)

// listRareFirstWords counts the functions whose name begins with a word that is rare in Kubernetes code, by this word.
func (r *repository) listRareFirstWords() (out []entry) {
	rare := map[string]int{}
	for _, p := range r.packages {
		for _, name := range p.functions {
			if word := getFirstWord(name); !isCommon[word] {
				rare[word]++
			}
		}
	}
	for word, n := range rare {
		out = append(out, entry{word, n})
	}
	return out
}

func (r *repository) newMeasures() []measure {
	var methods, fields, files, exported, lines, functions, comments, guides []entry
	for dir, p := range r.packages {
		for name, t := range p.types {
			at := dir + "." + name
			methods = append(methods, entry{at, len(r.findMethods(reference{dir, name}, map[reference]bool{}))})
			if !configuration.MatchString(name) {
				fields = append(fields, entry{at, t.fields})
			}
		}
		files = append(files, entry{dir, p.files})
		lines = append(lines, entry{dir, p.lines})
		functions = append(functions, entry{dir, len(p.functions)})
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
	all := sum("functions", functions)
	rarely := sum("percent of the functions begin with a word that is rare in Kubernetes code", r.listRareFirstWords())
	rarely.got = (rarely.got*100 + all.got/2) / max(1, all.got)
	return []measure{
		maxOf("methods of one type", methods),
		maxOf("fields of one struct", fields),
		maxOf("files of one package", files),
		maxOf("exported names of one package", exported),
		maxOf("lines of code of one package", lines),
		{name: "files in the repository", got: r.files},
		sum("exported names outside the test kits", exported),
		sum("lines of code", lines),
		all,
		rarely,
		sum("coined phrases in comments", comments),
		sum("coined phrases in guides", guides),
	}
}

// isPublic reports whether the exported names of a package are meant for other modules.
func isPublic(dir string, p *pkg) bool {
	return !p.main && !notPublic.MatchString(dir)
}

// findMethods returns the methods of a type, including methods that are promoted from embedded types of this
// repository.
func (r *repository) findMethods(at reference, seen map[reference]bool) map[string]bool {
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
		for name := range r.findMethods(e, seen) {
			out[name] = true
		}
	}
	return out
}

// maxOf returns a measure whose value is the largest entry.
func maxOf(name string, entries []entry) measure {
	sort(entries)
	m := measure{name: name, worst: entries}
	if len(entries) > 0 {
		m.got = entries[0].n
	}
	return m
}

// sum returns a measure whose value is the sum of all entries.
func sum(name string, entries []entry) measure {
	sort(entries)
	m := measure{name: name, worst: entries}
	for _, e := range entries {
		m.got += e.n
	}
	return m
}

func sort(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.what, b.what)) })
}
