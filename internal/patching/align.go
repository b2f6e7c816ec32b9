// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"cmp"
	"slices"
)

// run is a range in which two lists differ: [from, fromEnd) of one corresponds to [to, toEnd) of the other.
type run struct {
	from, fromEnd int
	to, toEnd     int
}

// pair is an item that two lists have in common.
type pair struct{ from, to int }

// align returns the differing runs in order.
func align(a, b []any) []run {
	head, tail := commonEnds(a, b)
	end := pair{len(a) - tail, len(b) - tail}
	var runs []run
	from, to := head, head
	for _, same := range append(inOrder(equalItems(a[:end.from], b[:end.to], head)), end) {
		if from < same.from || to < same.to {
			runs = append(runs, run{from, same.from, to, same.to})
		}
		from, to = same.from+1, same.to+1
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

// equalItems pairs the equal items from an index on, in the order of b. Each item is in at most one pair.
func equalItems(a, b []any, head int) []pair {
	places := map[string][]int{}
	for i, item := range a[head:] {
		text := textOf(item)
		places[text] = append(places[text], head+i)
	}
	var out []pair
	for j, item := range b[head:] {
		if text := textOf(item); len(places[text]) > 0 {
			out = append(out, pair{places[text][0], head + j})
			places[text] = places[text][1:]
		}
	}
	return out
}

// inOrder returns a longest subsequence of pairs that has the same order in both lists. The pairs are in the order of
// one of them.
func inOrder(pairs []pair) []pair {
	var last []int                    // for each length: the last pair of the best sequence of this length
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
