// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Listener triggers another run of an item. All notifications that arrive before a run starts trigger a single run. All
// notifications that arrive during a run trigger exactly one more run. A run cannot find out which listener triggered
// it.
type Listener struct {
	kind     listenerKind
	interval time.Duration
	events   <-chan types.NamespacedName
}

// listenerKind is the kind of a Listener. The zero value is invalid.
type listenerKind int

const (
	listenerKindObjects listenerKind = iota + 1
	listenerKindTimer
	listenerKindPoll
	listenerKindChannel
	listenerKindReference
)

// minInterval is the shortest interval that Timer and Poll accept.
const minInterval = time.Second

// Watch triggers a run when an object of the component in the target cluster changes. A change of the object's status
// also triggers a run. The resources of this package have this listener by default.
func Watch() Listener { return Listener{kind: listenerKindObjects} }

// Timer triggers a run at a fixed interval of at least one second, even if the component is ready.
func Timer(every time.Duration) Listener { return Listener{kind: listenerKindTimer, interval: every} }

// Poll triggers a run at a fixed interval of at least one second, as long as the component is not ready.
func Poll(every time.Duration) Listener { return Listener{kind: listenerKindPoll, interval: every} }

// Channel triggers a run of a deploy item when the channel delivers the name of the item. An empty name triggers a run
// of each item of the deployer. One goroutine reads the channel while the manager runs. Closing the channel triggers no
// run.
func Channel(events <-chan types.NamespacedName) Listener {
	return Listener{kind: listenerKindChannel, events: events}
}

// validate returns the reason why the listener is invalid, or "" if the listener is valid.
func (l Listener) validate() string {
	switch {
	case l.kind == 0:
		return "a listener is empty; use Watch, Timer, Poll or Channel"
	case l.kind == listenerKindChannel && l.events == nil:
		return "the channel of a listener is nil"
	case (l.kind == listenerKindTimer || l.kind == listenerKindPoll) && l.interval < minInterval:
		return fmt.Sprintf("the interval %s of a listener is too short; use at least %s", l.interval, minInterval)
	}
	return ""
}
