// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"regexp"
	"strings"
)

// none stands in the table for a promise without a test.
const none = "**none**"

// row is a line of the table: ID, promise, tests.
var row = regexp.MustCompile(`^\| ([A-Z][a-z]?[0-9]+) \| ([^|]+) \|[^|]*\|$`)

// looksLikeRow finds rows that were written in another shape, and would be left out silently.
var looksLikeRow = regexp.MustCompile(`^\|\s*[A-Z][a-z]?[0-9]+\s*\|`)

// Fill writes the tests into the last column of every row of a markdown
// document. All other text stays as it is.
// It returns the IDs that no test names, in the order of the document.
// Errors: a row of another shape, an ID that stands twice, no row at all.
func Fill(doc []byte, tests Tests) (filled []byte, missing []string, err error) {
	lines := strings.Split(string(doc), "\n")
	seen := map[string]bool{}
	for i, line := range lines {
		cells := row.FindStringSubmatch(line)
		switch {
		case cells == nil && looksLikeRow.MatchString(line):
			return nil, nil, fmt.Errorf("line %d is not of the shape `| ID | promise | tests |`: %s", i+1, line)
		case cells == nil:
			continue
		case seen[cells[1]]:
			return nil, nil, fmt.Errorf("line %d: %s stands twice", i+1, cells[1])
		}
		id := cells[1]
		seen[id] = true
		if len(tests[id]) == 0 {
			missing = append(missing, id)
		}
		lines[i] = fmt.Sprintf("| %s | %s | %s |", id, cells[2], cell(tests[id]))
	}
	if len(seen) == 0 {
		return nil, nil, fmt.Errorf("no rows of the shape `| ID | promise | tests |`")
	}
	return []byte(strings.Join(lines, "\n")), missing, nil
}

// cell lists tests by file. A file whose table names only the ID stands alone.
func cell(tests []Test) string {
	if len(tests) == 0 {
		return none
	}
	var b strings.Builder
	file, before := "", ""
	for _, t := range tests {
		if t.File != file {
			if file != "" {
				b.WriteString("; ")
			}
			fmt.Fprintf(&b, "`%s`", t.File)
			file, before = t.File, " › "
		}
		if t.Name == "" {
			continue
		}
		b.WriteString(before + strings.NewReplacer("|", "/", "\n", " ").Replace(t.Name))
		before = ", "
	}
	return b.String()
}
