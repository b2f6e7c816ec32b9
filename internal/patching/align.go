// SPDX-License-Identifier: Apache-2.0

package patching

// maxEdits bounds the work for two lists: if more items than this have to be removed and added, the stretch between the first and the
// last difference counts as replaced.
const maxEdits = 200

// run is a stretch of two lists that differs: [from, fromEnd) of the one stands against [to, toEnd) of the other.
type run struct {
	from, fromEnd int
	to, toEnd     int
}

// align returns the runs in order, so that as many items as possible are the same.
func align(a, b []any) []run {
	head, tail := commonEnds(a, b)
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	path := shortestPath(a, b)
	if path == nil {
		return []run{{head, head + len(a), head, head + len(b)}}
	}
	var runs []run
	i, j := 0, 0
	for _, next := range path {
		equalItems := 0
		for i < next.from && j < next.to {
			i, j, equalItems = i+1, j+1, equalItems+1
		}
		if last := len(runs) - 1; last >= 0 && equalItems == 0 {
			runs[last].fromEnd, runs[last].toEnd = head+next.from, head+next.to
		} else if i < next.from || j < next.to {
			runs = append(runs, run{head + i, head + next.from, head + j, head + next.to})
		}
		i, j = next.from, next.to
	}
	return runs
}

// commonEnds counts the equal items at the beginning and at the end.
func commonEnds(a, b []any) (head, tail int) {
	for head < len(a) && head < len(b) && Equal(a[head], b[head]) {
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && Equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	return head, tail
}

// point is a place in two lists.
type point struct{ from, to int }

// shortestPath returns the points after each removal or addition, and the end, by the algorithm of Myers. It returns nil if the path
// is longer than maxEdits.
func shortestPath(a, b []any) []point {
	limit := min(len(a)+len(b), maxEdits)
	furthest := make([]int, 2*limit+3) // by diagonal, shifted by limit+1
	var history [][]int
	for edits := 0; edits <= limit; edits++ {
		for k := -edits; k <= edits; k += 2 {
			at := limit + 1 + k
			from := furthest[at-1] + 1
			if isAddition(furthest, at, k, edits) {
				from = furthest[at+1]
			}
			from += equalItems(a, b, from, from-k)
			furthest[at] = from
			if from >= len(a) && from-k >= len(b) {
				return backtrack(append(history, furthest), limit, len(a), len(b))
			}
		}
		history = append(history, append([]int(nil), furthest...))
	}
	return nil
}

// isAddition reports whether the furthest path to a diagonal comes by an addition.
func isAddition(furthest []int, at, diagonal, edits int) bool {
	return diagonal == -edits || diagonal != edits && furthest[at-1] < furthest[at+1]
}

// equalItems counts the items from two places on that are equal.
func equalItems(a, b []any, from, to int) int {
	n := 0
	for from >= 0 && to >= 0 && from+n < len(a) && to+n < len(b) && Equal(a[from+n], b[to+n]) {
		n++
	}
	return n
}

// backtrack follows the furthest points of each number of edits from the end to the beginning.
func backtrack(history [][]int, limit, from, to int) []point {
	path := make([]point, len(history)) // the last one is the end
	path[len(history)-1] = point{from, to}
	for edits := len(history) - 1; edits > 0; edits-- {
		furthest, k := history[edits-1], from-to
		at := limit + 1 + k
		if isAddition(furthest, at, k, edits) {
			from, to = furthest[at+1], furthest[at+1]-k-1
			path[edits-1] = point{from, to + 1}
		} else {
			from, to = furthest[at-1], furthest[at-1]-k+1
			path[edits-1] = point{from + 1, to}
		}
	}
	return path
}
