// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hunk is a change in a unified diff without context.
type hunk struct {
	file  string
	at    int      // the first removed line, or the line before which lines are added, counted from 0
	lines []string // the removed and added lines, with '-' or '+' as the first byte
}

var (
	changedFile = regexp.MustCompile(`^\+\+\+ b/(\S+)`)
	hunkHeader  = regexp.MustCompile(`^@@ -(\d+)(,0)?(?:,\d+)? \+`)
)

// parseHunks returns the hunks of the output of `git diff -U0`.
func parseHunks(diff string) []hunk {
	var out []hunk
	file := ""
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\n")
		if m := changedFile.FindStringSubmatch(line); m != nil {
			file = m[1]
			continue
		}
		if m := hunkHeader.FindStringSubmatch(line); m != nil {
			at, _ := strconv.Atoi(m[1]) // the pattern matches only digits
			if m[2] == "" {
				at-- // a hunk that only adds lines has the number of the line before them
			}
			out = append(out, hunk{file: file, at: at})
			continue
		}
		if len(out) > 0 && file == out[len(out)-1].file && line != "" && (line[0] == '-' || line[0] == '+') && !strings.HasPrefix(line, "--- ") {
			last := &out[len(out)-1]
			last.lines = append(last.lines, line)
		}
	}
	return out
}

// toEdit converts the hunk to an edit of the declaration that contains it. It adds as many of the lines before and
// after the hunk as are necessary for the lines to occur only once in the declaration.
func (h hunk) toEdit(source []byte) (edit, error) {
	found, err := parseDeclarations(source)
	if err != nil {
		return edit{}, err
	}
	removed := 0
	for _, line := range h.lines {
		if line[0] == '-' {
			removed++
		}
	}
	i := slices.IndexFunc(found, func(d declaration) bool { return d.first <= h.at && h.at+max(removed, 1)-1 <= d.last })
	if i < 0 {
		return edit{}, fmt.Errorf("line %d is not within one declaration", h.at+1)
	}
	d, code := found[i], strings.Split(string(source), "\n")
	e := edit{dir: path.Dir(h.file), declaration: d.name}
	for first, last := h.at, h.at+removed-1; ; first, last = max(first-1, d.first), min(last+1, d.last) {
		e.lines = slices.Concat(markUnchanged(code[first:h.at]), h.lines, markUnchanged(code[h.at+removed:last+1]))
		if _, err := e.findLocation(map[string][]byte{h.file: source}); err == nil {
			return e, nil
		}
		if first == d.first && last == d.last {
			return edit{}, errors.New("the lines of the change occur more than once")
		}
	}
}

// markUnchanged returns lines as an edit contains them if it does not change them.
func markUnchanged(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		out = append(out, " "+line)
	}
	return out
}
