// SPDX-License-Identifier: Apache-2.0

package patch

// maxAligned bounds the work for two lists: above this product of the lengths of their differing middles
// the middle counts as replaced.
const maxAligned = 1 << 16

// run is a stretch of two lists: [from, fromEnd) of the one stands against [to, toEnd) of the other.
type run struct {
	from, fromEnd int
	to, toEnd     int
	same          bool
}

// align cuts two lists into runs that are the same and runs that differ, in order and without gaps, so
// that as many items as possible are the same.
func align(a, b []any) []run {
	head := 0
	for head < len(a) && head < len(b) && equal(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	runs := add(nil, run{0, head, 0, head, true})
	runs = alignMiddle(runs, a, b, run{head, len(a) - tail, head, len(b) - tail, false})
	return add(runs, run{len(a) - tail, len(a), len(b) - tail, len(b), true})
}

func alignMiddle(runs []run, a, b []any, middle run) []run {
	rows, columns := middle.fromEnd-middle.from, middle.toEnd-middle.to
	if rows*columns > maxAligned {
		return add(runs, middle)
	}
	same, longest := commonLengths(a[middle.from:middle.fromEnd], b[middle.to:middle.toEnd])
	i, j := 0, 0
	for i < rows || j < columns {
		from, to := middle.from+i, middle.to+j
		switch {
		case i < rows && j < columns && same[i][j] && longest[i][j] == longest[i+1][j+1]+1:
			runs = add(runs, run{from, from + 1, to, to + 1, true})
			i, j = i+1, j+1
		case j == columns || i < rows && longest[i+1][j] >= longest[i][j+1]:
			runs = add(runs, run{from, from + 1, to, to, false})
			i++
		default:
			runs = add(runs, run{from, from, to, to + 1, false})
			j++
		}
	}
	return runs
}

// commonLengths tells which items are equal, and the length of the longest common subsequence from each
// pair of positions on.
func commonLengths(a, b []any) (same [][]bool, longest [][]int) {
	same, longest = make([][]bool, len(a)), make([][]int, len(a)+1)
	longest[len(a)] = make([]int, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		same[i], longest[i] = make([]bool, len(b)), make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0; j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if same[i][j] = equal(a[i], b[j]); same[i][j] {
				longest[i][j] = max(longest[i][j], longest[i+1][j+1]+1)
			}
		}
	}
	return same, longest
}

// add joins a run to the last one if both are the same, or both differ.
func add(runs []run, next run) []run {
	if next.from == next.fromEnd && next.to == next.toEnd {
		return runs
	}
	if last := len(runs) - 1; last >= 0 && runs[last].same == next.same {
		runs[last].fromEnd, runs[last].toEnd = next.fromEnd, next.toEnd
		return runs
	}
	return append(runs, next)
}
