// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// checked is a resource that can tell its own faults when the graph is built.
type checked interface {
	check() []string
}

// inspect asks a resource what it is. The resource may be nil, or panic.
func inspect(component string, resource Resource) (node vertex, faults []string) {
	node = vertex{component: component, resource: resource}
	if isNil(resource) {
		return node, []string{"has no resource (nil)"}
	}
	defer func() {
		if value := recover(); value != nil {
			faults = append(faults, fmt.Sprintf("panics when it is looked at: %v", value))
		}
	}()
	node.preparer, _ = resource.(Preparer)
	node.deleter, _ = resource.(Deleter)
	if marker, ok := resource.(AlwaysReady); ok {
		node.always = marker.AlwaysReady()
	}
	if c, ok := resource.(checked); ok {
		faults = append(faults, c.check()...)
	}
	node.listeners = resource.Listeners()
	return node, append(faults, node.listenerFaults()...)
}

// listenerFaults checks what the node listens to, and notes the shortest poll.
func (v *vertex) listenerFaults() []string {
	var faults []string
	for _, l := range v.listeners {
		switch fault := l.fault(); {
		case fault != "":
			faults = append(faults, fault)
		case l.kind == listensToPoll:
			v.poll = shorter(v.poll, l.every)
		case l.kind == listensToObjects && v.preparer == nil:
			faults = append(faults, "listens to its objects, but keeps none: it has no Prepare")
		}
	}
	if len(v.listeners) == 0 && !v.always {
		faults = append(faults, "may be unready, but listens to nothing, so nobody would look at it again:"+
			" add a listener, or say that it is always ready")
	}
	return faults
}

// timer is the shortest Timer of the node; 0: it has none.
func (v *vertex) timer() time.Duration {
	var shortest time.Duration
	for _, l := range v.listeners {
		if l.kind == listensToTimer {
			shortest = shorter(shortest, l.every)
		}
	}
	return shortest
}

// shorter is the shorter of two durations, of which 0 means none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// isNil also finds nil pointers, maps and functions inside the interface.
func isNil(resource Resource) bool {
	if resource == nil {
		return true
	}
	switch v := reflect.ValueOf(resource); v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Slice, reflect.Chan, reflect.Interface:
		return v.IsNil()
	default:
		return false
	}
}

// recovered makes the panic of a resource an error. Use it in a deferred call.
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = &deployerlib.PanicError{Value: value, Stack: debug.Stack()}
	}
}
