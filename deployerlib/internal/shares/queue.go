// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ticket is the position of a waiting item in the queue.
type ticket struct {
	Claim

	item   types.NamespacedName
	number uint64
}

// compareTickets orders tickets by descending priority. Tickets of the same priority are ordered by their numbers, so
// that the oldest comes first.
func compareTickets(a, b ticket) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.number, b.number))
}

// queue contains the waiting items. It has one line of tickets for each place, which is a namespace and a target.
type queue struct {
	lines   map[Place][]ticket // every line is sorted and is not empty
	tickets map[types.NamespacedName]ticket
	last    uint64
	maxLen  int // the largest number of tickets in the map
}

// smallQueue is the number of tickets up to which an empty queue keeps its memory.
const smallQueue = 64

func newQueue() queue {
	return queue{lines: map[Place][]ticket{}, tickets: map[types.NamespacedName]ticket{}}
}

func (q *queue) len() int { return len(q.tickets) }

// add adds an item with its claim. If the item already waits, add replaces the claim. The ticket of the item then keeps
// its number, unless the namespace or the target in the claim has changed.
func (q *queue) add(item types.NamespacedName, claim Claim) {
	t, waits := q.tickets[item]
	switch {
	case waits && t.Claim == claim:
		return
	case waits:
		q.remove(item)
	}
	if !waits || t.Place != claim.Place {
		q.last++
		t = ticket{item: item, number: q.last}
	}
	t.Claim = claim
	line := q.lines[t.Place]
	i, _ := slices.BinarySearchFunc(line, t, compareTickets)
	q.lines[t.Place] = slices.Insert(line, i, t)
	q.tickets[item] = t
	q.maxLen = max(q.maxLen, len(q.tickets))
}

// remove removes an item.
func (q *queue) remove(item types.NamespacedName) {
	t, waits := q.tickets[item]
	if !waits {
		return
	}
	delete(q.tickets, item)
	line := q.lines[t.Place]
	i, _ := slices.BinarySearchFunc(line, t, compareTickets)
	if i == 0 {
		line = line[1:] // this does not move the remaining tickets
	} else {
		line = slices.Delete(line, i, i+1)
	}
	if q.lines[t.Place] = line; len(line) == 0 {
		delete(q.lines, t.Place)
	}
	if q.len() == 0 && q.maxLen > smallQueue {
		last := q.last
		*q = newQueue() // emptied maps keep their memory
		q.last = last
	}
}
