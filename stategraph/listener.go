// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Listener is something that brings about another run of an item. Requests of several listeners are one run; one that
// comes while a run is under way leads to exactly one more. A run does not learn which listener asked for it.
type Listener struct {
	kind   listenerKind
	every  time.Duration
	events <-chan types.NamespacedName
}

// listenerKind says what a Listener listens to. The zero value is invalid.
type listenerKind int

const (
	listensToObjects listenerKind = iota + 1
	listensToTimer
	listensToPoll
	listensToChannel
	listensToReference
)

// minEvery is the shortest period of a timer.
const minEvery = time.Second

// Watch listens to the objects that the component keeps in the target cluster: any change of one of them, its status
// included. Resources of this package have it without being asked.
func Watch() Listener { return Listener{kind: listensToObjects} }

// Timer asks for a run again and again, whether the component is ready or not. At least a second.
func Timer(every time.Duration) Listener { return Listener{kind: listensToTimer, every: every} }

// Poll is Timer while the component is not ready.
func Poll(every time.Duration) Listener { return Listener{kind: listensToPoll, every: every} }

// Channel asks for a run of the deploy item that is received from events; the zero name means all items of the deployer.
// It is read from the start of the manager to its end, by one goroutine. A closed channel is silent.
func Channel(events <-chan types.NamespacedName) Listener {
	return Listener{kind: listensToChannel, events: events}
}

// String is for people.
func (l Listener) String() string {
	switch l.kind {
	case listensToObjects, listensToReference:
		return "watch"
	case listensToTimer:
		return fmt.Sprintf("timer(%s)", l.every)
	case listensToPoll:
		return fmt.Sprintf("poll(%s)", l.every)
	case listensToChannel:
		return "channel"
	}
	return "nothing"
}

// fault tells what is wrong with the listener; "" when nothing is.
func (l Listener) fault() string {
	switch {
	case l.kind == 0:
		return "a listener is empty; use Watch, Timer, Poll or Channel"
	case l.kind == listensToChannel && l.events == nil:
		return "the channel of a listener is nil"
	case (l.kind == listensToTimer || l.kind == listensToPoll) && l.every < minEvery:
		return fmt.Sprintf("%s is too often, at least %s", l, minEvery)
	}
	return ""
}
