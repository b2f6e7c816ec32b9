// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"cmp"
	"slices"
)

// edit describes a difference between two lists: the items [from, fromEnd) of the first list are replaced by the items
// [to, toEnd) of the second list.
type edit struct {
	from, fromEnd int
	to, toEnd     int
}

// pair contains the indices of equal items in two lists.
type pair struct{ from, to int }

// listEdits returns all differences between a and b, in order.
func listEdits(a, b []any) []edit {
	head, tail := countEqualEnds(a, b)
	end := pair{len(a) - tail, len(b) - tail}
	var edits []edit
	from, to := head, head
	for _, same := range append(inOrder(equalItems(a[:end.from], b[:end.to], head)), end) {
		if from < same.from || to < same.to {
			edits = append(edits, edit{from, same.from, to, same.to})
		}
		from, to = same.from+1, same.to+1
	}
	return edits
}

// countEqualEnds returns how many items are equal at the beginning and at the end of both lists.
func countEqualEnds(a, b []any) (head, tail int) {
	for head < len(a) && head < len(b) && Equal(a[head], b[head]) {
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && Equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	return head, tail
}

// equalItems returns pairs of equal items, in the order of b. It skips the first `head` items of both lists. Each item
// is in at most one pair.
func equalItems(a, b []any, head int) []pair {
	places := map[string][]int{}
	for i, item := range a[head:] {
		text := toText(item)
		places[text] = append(places[text], head+i)
	}
	var out []pair
	for j, item := range b[head:] {
		if text := toText(item); len(places[text]) > 0 {
			out = append(out, pair{places[text][0], head + j})
			places[text] = places[text][1:]
		}
	}
	return out
}

// inOrder returns the longest subsequence of pairs whose items have the same order in both lists. The given pairs must
// be sorted by the index in the second list.
func inOrder(pairs []pair) []pair {
	var last []int                    // last[n] is the index of the last pair of the best sequence of n+1 pairs so far
	before := make([]int, len(pairs)) // the predecessor of each pair in its sequence
	for k, p := range pairs {
		n, _ := slices.BinarySearchFunc(last, p.from, func(k, from int) int { return cmp.Compare(pairs[k].from, from) })
		if n > 0 {
			before[k] = last[n-1]
		}
		last = slices.Replace(last, n, min(n+1, len(last)), k)
	}
	out := make([]pair, len(last))
	for n := len(last) - 1; n >= 0; n-- {
		if n < len(last)-1 {
			last[n] = before[last[n+1]]
		}
		out[n] = pairs[last[n]]
	}
	return out
}
