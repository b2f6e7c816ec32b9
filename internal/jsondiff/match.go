// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// maxCompared is the maximum number of item comparisons in one call of matcher.matchBest. If the call would need more,
// it matches the items in order.
const maxCompared = 1 << 14

// matcher determines which item of an old list corresponds to which item of a new list.
type matcher struct {
	before, after []any
	from          []int  // for each item of the new list, its index in the old list, or -1
	taken         []bool // for each item of the old list, whether it is already matched
}

// Match compares an old list with a new one. For each item of the new list, it returns the index of the corresponding
// item of the old list, or -1. Items with a key are matched by this key. Items without a key are matched if they are
// equal, then if they have equal members, and finally by their position.
func Match(before, after []any, key string) []int {
	m := matcher{before: before, after: after, from: make([]int, len(after)), taken: make([]bool, len(before))}
	head, tail := countEqualEnds(before, after)
	for j := range after {
		m.from[j] = -1
		if j < head {
			m.setMatch(j, j)
		} else if i := j - len(after) + len(before); j >= len(after)-tail {
			m.setMatch(i, j)
		}
	}
	m.matchGroups(func(item any) string { return getKey(item, key) }, 0)
	for i := range before { // if no new item has the key of an old item, the old item stays unmatched
		m.taken[i] = m.taken[i] || getKey(before[i], key) != ""
	}
	m.matchGroups(toText, 0)
	m.matchGroups(func(any) string { return "any" }, 1)
	for j := range after {
		if m.from[j] < 0 && j < len(before) && !m.taken[j] {
			m.setMatch(j, j)
		}
	}
	return m.from
}

func (m *matcher) setMatch(i, j int) { m.from[j], m.taken[i] = i, true }

// getKey returns the value of the member `key` of an item as text, or "" if there is no such member.
func getKey(item any, key string) string {
	members, _ := item.(map[string]any)
	switch value := members[key].(type) {
	case string:
		return value
	case int64, float64, bool:
		return fmt.Sprint(value)
	}
	return ""
}

// toText returns an item as JSON text.
func toText(item any) string {
	data, _ := json.Marshal(item) // plain values never fail
	return string(data)
}

// matchGroups matches items for which the function `name` returns the same non-empty text, and which have at least
// `least` equal members.
func (m *matcher) matchGroups(name func(any) string, least int) {
	left := map[string][]int{}
	for i, item := range m.before {
		if !m.taken[i] {
			left[name(item)] = append(left[name(item)], i)
		}
	}
	delete(left, "")
	open := map[string][]int{}
	for j, item := range m.after {
		if len(left) > 0 && m.from[j] < 0 {
			open[name(item)] = append(open[name(item)], j)
		}
	}
	for group, indices := range left {
		m.matchBest(indices, open[group], least)
	}
}

// matchBest matches the old items in `left` with the new items in `open`. It begins with the two items that have the
// most equal members.
func (m *matcher) matchBest(left, open []int, least int) {
	type candidate struct{ i, j, likeness int }
	var all []candidate
	for at, i := range left {
		if len(left)*len(open) > maxCompared { // match the items in order
			all = append(all, candidate{i, open[min(at, len(open)-1)], 0})
			continue
		}
		for _, j := range open {
			if n := countEqualMembers(m.before[i], m.after[j]); n >= least {
				all = append(all, candidate{i, j, n})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.likeness, a.likeness), cmp.Compare(max(a.i-a.j, a.j-a.i), max(b.i-b.j, b.j-b.i)))
	})
	for _, c := range all {
		if m.from[c.j] < 0 && !m.taken[c.i] {
			m.setMatch(c.i, c.j)
		}
	}
}

// countEqualMembers returns the number of members that are equal in both objects.
func countEqualMembers(a, b any) int {
	left, _ := a.(map[string]any)
	right, _ := b.(map[string]any)
	n := 0
	for key, value := range left {
		if other, exists := right[key]; exists && Equal(value, other) {
			n++
		}
	}
	return n
}
