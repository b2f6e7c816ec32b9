// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/shlex"
)

// mutant is one deliberate fault in the code.
type mutant struct {
	name      string   // name of the entry in the archive
	fault     string   // description of the fault, one sentence
	tests     []string // arguments of go test
	arguments string   // the same arguments as a single string
	edits     []edit
}

// parse parses an entry of an archive.
func parse(name string, text []byte) (mutant, error) {
	m := mutant{name: name}
	var fault []string
	rest := string(text)
	for line := range strings.Lines(string(text)) {
		comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !isComment {
			break
		}
		rest = strings.TrimPrefix(rest, line)
		args, isTests := strings.CutPrefix(comment, "tests: ")
		if !isTests {
			fault = append(fault, comment)
			continue
		}
		words, err := shlex.Split(args)
		if err != nil {
			return m, fmt.Errorf("split %q: %w", args, err)
		}
		m.tests, m.arguments = words, args
	}
	m.fault = strings.Join(fault, " ")
	var err error
	if m.edits, err = parseEdits(rest); err != nil {
		return m, err
	}
	return m, m.validate()
}

func (m mutant) validate() error {
	switch {
	case m.fault == "":
		return errors.New("the line that describes the fault is missing")
	case len(m.listPackages()) == 0:
		return errors.New(`the line "# tests: ./package" is missing`)
	case len(m.edits) == 0:
		return errors.New("the mutant changes nothing")
	}
	top, _, _ := strings.Cut(m.name, "-")
	for _, e := range m.edits {
		if first, _, _ := strings.Cut(e.dir, "/"); first != top {
			return fmt.Errorf("the name does not begin with the top directory of %s", e.dir)
		}
	}
	return nil
}

// String formats the mutant as parse expects it.
func (m mutant) String() string {
	var b strings.Builder
	if m.fault != "" {
		fmt.Fprintf(&b, "# %s\n", m.fault)
	}
	if m.arguments != "" {
		fmt.Fprintf(&b, "# tests: %s\n", m.arguments)
	}
	for _, e := range m.edits {
		b.WriteString(e.String())
	}
	return b.String()
}

// listPackages returns the packages whose tests are run.
func (m mutant) listPackages() []string {
	return slices.DeleteFunc(slices.Clone(m.tests), func(arg string) bool { return !strings.HasPrefix(arg, "./") })
}

// apply returns the files that the mutant changes, with their changed contents. It does not change the files below
// `root`. It returns an error if an edit does not apply.
func (m mutant) apply(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range m.edits {
		if err := readPackage(root, e.dir, files); err != nil {
			return nil, err
		}
	}
	places := make([]location, len(m.edits))
	for i, e := range m.edits {
		at, err := e.findLocation(files)
		if err != nil {
			return nil, fmt.Errorf("does not apply: %w", err)
		}
		places[i] = at
	}
	changed := map[string][]byte{}
	for _, i := range lastFirst(places) {
		file := places[i].file
		data, again := changed[file]
		if !again {
			data = files[file]
		}
		changed[file] = m.edits[i].replace(data, places[i])
	}
	return changed, nil
}

// lastFirst returns the indexes of the places, sorted so that an edit does not move the place of a later one.
func lastFirst(places []location) []int {
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return places[b].line - places[a].line })
	return order
}
