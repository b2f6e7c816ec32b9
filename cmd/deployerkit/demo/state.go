// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

// state contains the rows of the table and the numbers of hook calls. It is safe for concurrent use.
type state struct {
	mu      sync.Mutex
	rows    map[string]*row                       // by key, see rowOf
	calls   map[string]map[extension.HookType]int // by item; the key is "" for the Start hook, which has no item
	changed chan struct{}                         // contains an element after a change
}

func newState() *state {
	return &state{rows: map[string]*row{}, calls: map[string]map[extension.HookType]int{}, changed: make(chan struct{}, 1)}
}

// hook is called at every hook point. It counts and logs the call and returns no result.
func (b *state) hook(_ context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
	log.Info("hook", "hookType", string(t))
	name := ""
	if di != nil {
		name = di.Name
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls[name] == nil {
		b.calls[name] = map[extension.HookType]int{}
	}
	b.calls[name][t]++
	if name != "" {
		b.row(name).hooks++
	}
	b.notify()
	return nil, nil
}

// called returns the number of calls of the hook at a hook point for an item.
func (b *state) called(name string, t extension.HookType) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[name][t]
}

// silent returns the hook points for which the hook was never called.
func (b *state) silent() []extension.HookType {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(extension.HookTypes(), func(t extension.HookType) bool {
		for _, calls := range b.calls {
			if calls[t] > 0 {
				return true
			}
		}
		return false
	})
}

// summary returns, as text, the number of calls for each hook point, in the order in which a reconcile reaches the hook
// points.
func (b *state) summary() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var parts []string
	for _, t := range extension.HookTypes() {
		total := 0
		for _, calls := range b.calls {
			total += calls[t]
		}
		parts = append(parts, fmt.Sprintf("%s %d", t, total))
	}
	return strings.Join(parts, ", ")
}

// step records a call of a method of the deployer in the row of the item. It ignores all other kinds of steps.
func (b *state) step(s deployerlib.Step) {
	if s.Kind != deployerlib.StepCall {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.row(s.Item.Name)
	r.event = s.Name + " was called"
	if reason, _, waits := deployerlib.AsWait(s.Err); waits {
		r.event = contract.OneLine(s.Name+" is waiting for "+reason, maxEvent)
	} else if s.Err != nil {
		r.event = contract.OneLine(s.Name+" failed: "+s.Err.Error(), maxEvent)
	}
	b.notify()
}

// maxEvent is the maximum length of the text of an event.
const maxEvent = 100

// handler returns an event handler that updates the state.
func (b *state) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    b.observe,
		UpdateFunc: func(_, obj any) { b.observe(obj) },
		DeleteFunc: b.gone,
	}
}

// observe records the current version of an object.
func (b *state) observe(obj any) {
	if key, now, ok := rowOf(obj); ok {
		b.update(key, now)
	}
}

// gone records that an object was deleted.
func (b *state) gone(obj any) {
	if late, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = late.Obj
	}
	if key, now, ok := rowOf(obj); ok {
		now.phase, now.job, now.event = "(gone)", "", ""
		b.update(key, now)
	}
}

// update replaces a row. The new row of an item keeps the number of hook calls. It also keeps the last event unless
// `now` contains an event.
func (b *state) update(key string, now row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.row(key)
	if now.hooks != noHooks {
		now.hooks, now.event = r.hooks, cmp.Or(now.event, r.event)
	}
	*r = now
	b.notify()
}

// snapshot returns the rows in the order of the table.
func (b *state) snapshot() []row {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := make([]row, 0, len(b.rows))
	for _, r := range b.rows {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.order, b.order) })
	return rows
}

// row returns the row of an object and creates it if necessary. The caller holds mu.
func (b *state) row(key string) *row {
	if b.rows[key] == nil {
		b.rows[key] = &row{order: key, name: key, phase: "(new)"}
	}
	return b.rows[key]
}

// notify sends to the channel `b.changed`, so that the terminal displays the change.
func (b *state) notify() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}
