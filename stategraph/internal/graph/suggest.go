// SPDX-License-Identifier: Apache-2.0

package graph

import "fmt"

// Suggest returns a hint such as ` (did you mean "service"?)` for a misspelt name, or "" if none of the names is
// similar.
func Suggest(name string, names []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, candidate := range names {
		if d := computeDistance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	if best == "" || best == name {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// computeDistance returns the number of letters that must be changed, added or removed to turn `a` into `b`. It
// considers only the first 64 bytes of each text.
func computeDistance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
