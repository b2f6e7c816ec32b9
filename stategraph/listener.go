// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Listener triggers another run of an item. Requests of several listeners lead to one run, and requests during a run
// lead to exactly one more. A run does not know which listener triggered it.
type Listener struct {
	kind   listenerKind
	every  time.Duration
	events <-chan types.NamespacedName
}

// listenerKind is what a Listener listens to. The zero value is invalid.
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

// Watch listens to the objects that the component keeps in the target cluster, for any change of one of them or of its
// status. Resources of this package have it by default.
func Watch() Listener { return Listener{kind: listensToObjects} }

// Timer triggers a run at a fixed interval of at least a second, whether the component is ready or not.
func Timer(every time.Duration) Listener { return Listener{kind: listensToTimer, every: every} }

// Poll is Timer while the component is not ready.
func Poll(every time.Duration) Listener { return Listener{kind: listensToPoll, every: every} }

// Channel triggers a run of each deploy item that is received from events. The zero name means all items of the
// deployer. One goroutine reads events from the start of the manager to its end. A closed channel triggers nothing.
func Channel(events <-chan types.NamespacedName) Listener {
	return Listener{kind: listensToChannel, events: events}
}

// String formats the listener for people.
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

// fault returns what is wrong with the listener, or "" if it is valid.
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
