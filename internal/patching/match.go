// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// maxCompared limits the work for items without keys. If the product of their numbers is larger, they are matched in
// order.
const maxCompared = 1 << 14

// matcher determines which item of one list corresponds to which item of another.
type matcher struct {
	before, after []any
	from          []int  // for each item of after: its index in before, or -1
	taken         []bool // for each item of before
}

// match returns, for each item of after, the index of the corresponding item of before, or -1. Items are matched by
// their key, otherwise by equality, otherwise by common content, otherwise by their position.
func match(before, after []any, key string) []int {
	m := matcher{before: before, after: after, from: make([]int, len(after)), taken: make([]bool, len(before))}
	head, tail := commonEnds(before, after)
	for j := range after {
		m.from[j] = -1
		if j < head {
			m.take(j, j)
		} else if i := j - len(after) + len(before); j >= len(after)-tail {
			m.take(i, j)
		}
	}
	m.pairGroups(func(item any) string { return keyOf(item, key) }, 0)
	for i := range before { // an item with a key that is gone does not correspond to another one
		m.taken[i] = m.taken[i] || keyOf(before[i], key) != ""
	}
	m.pairGroups(textOf, 0)
	m.pairGroups(func(any) string { return "any" }, 1)
	for j := range after {
		if m.from[j] < 0 && j < len(before) && !m.taken[j] {
			m.take(j, j)
		}
	}
	return m.from
}

func (m *matcher) take(i, j int) { m.from[j], m.taken[i] = i, true }

// keyOf returns the key of an item as text, or "" if it has none.
func keyOf(item any, key string) string {
	members, _ := item.(map[string]any)
	switch value := members[key].(type) {
	case string:
		return value
	case int64, float64, bool:
		return fmt.Sprint(value)
	}
	return ""
}

// textOf returns an item as text.
func textOf(item any) string {
	data, err := json.Marshal(item)
	if err != nil {
		return ""
	}
	return string(data)
}

// pairGroups matches items that have the same non-empty name and at least least members in common.
func (m *matcher) pairGroups(name func(any) string, least int) {
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
		m.pair(indices, open[group], least)
	}
}

// pair matches two groups of items, starting with those that have the most in common.
func (m *matcher) pair(left, open []int, least int) {
	type candidate struct{ i, j, likeness int }
	var all []candidate
	for at, i := range left {
		if len(left)*len(open) > maxCompared { // in order
			all = append(all, candidate{i, open[min(at, len(open)-1)], 0})
			continue
		}
		for _, j := range open {
			if n := likeness(m.before[i], m.after[j]); n >= least {
				all = append(all, candidate{i, j, n})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.likeness, a.likeness), cmp.Compare(max(a.i-a.j, a.j-a.i), max(b.i-b.j, b.j-b.i)))
	})
	for _, c := range all {
		if m.from[c.j] < 0 && !m.taken[c.i] {
			m.take(c.i, c.j)
		}
	}
}

// likeness returns the number of members that are equal in both objects.
func likeness(a, b any) int {
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
