// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"maps"
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

// row is what is shown of one item.
type row struct {
	name  string
	phase string
	job   string
	hooks int    // hook calls so far
	event string // what happened last
}

// board knows what happened so far: what the API server tells, what the hooks
// were called for, what the deployer did. It is safe for concurrent use.
type board struct {
	mu      sync.Mutex
	rows    map[string]*row
	calls   map[string]map[extension.HookType]int // by item; "" is the Start hook's, which knows none
	changed chan struct{}                         // holds one token when something changed
}

func newBoard() *board {
	return &board{rows: map[string]*row{}, calls: map[string]map[extension.HookType]int{}, changed: make(chan struct{}, 1)}
}

// hook is called at every hook point. It counts, logs, and has no opinion.
func (b *board) hook(_ context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
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

// called is how often the hook was called at a point, for one item.
func (b *board) called(name string, t extension.HookType) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[name][t]
}

// silent are the hook points that were never reached.
func (b *board) silent() []extension.HookType {
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

// summary is how often each hook point was reached, in the order of the flow.
func (b *board) summary() string {
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

// step notes the calls of the deployer.
func (b *board) step(s deployerlib.Step) {
	if s.Kind != deployerlib.StepCall {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.row(s.Item.Name)
	r.event = s.Name + " was called"
	switch {
	case s.Err != nil && strings.HasPrefix(s.Err.Error(), "waiting for "):
		r.event = contract.OneLine(s.Name+" is "+s.Err.Error(), maxEvent)
	case s.Err != nil:
		r.event = contract.OneLine(s.Name+" failed: "+s.Err.Error(), maxEvent)
	}
	b.notify()
}

// maxEvent is how long the text of an event may be.
const maxEvent = 100

// handler follows the items as the API server tells about them.
func (b *board) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    b.observe,
		UpdateFunc: func(_, obj any) { b.observe(obj) },
		DeleteFunc: b.gone,
	}
}

// observe notes what the item says now.
func (b *board) observe(obj any) {
	di, ok := obj.(*lsv1alpha1.DeployItem)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.row(di.Name)
	r.phase, r.job = phaseText(di), jobText(di)
	if e := di.Status.LastError; e != nil {
		r.event = contract.OneLine(e.Reason+": "+e.Message, maxEvent)
	}
	b.notify()
}

// gone notes that the item does not exist any more.
func (b *board) gone(obj any) {
	if late, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = late.Obj
	}
	di, ok := obj.(*lsv1alpha1.DeployItem)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.row(di.Name)
	r.phase, r.job = "(gone)", ""
	b.notify()
}

// snapshot is the table, sorted by name.
func (b *board) snapshot() []row {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := make([]row, 0, len(b.rows))
	for _, name := range slices.Sorted(maps.Keys(b.rows)) {
		rows = append(rows, *b.rows[name])
	}
	return rows
}

// row finds or makes the row of an item; the caller holds mu.
func (b *board) row(name string) *row {
	if b.rows[name] == nil {
		b.rows[name] = &row{name: name, phase: "(new)"}
	}
	return b.rows[name]
}

// notify leaves a token for the screen.
func (b *board) notify() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// phaseText is the phase with a mark of a deletion.
func phaseText(di *lsv1alpha1.DeployItem) string {
	if di.Status.Phase == "" {
		return "(new)"
	}
	return string(di.Status.Phase)
}

// jobText is the job, or without job IDs the generation, and whether it is done.
func jobText(di *lsv1alpha1.DeployItem) string {
	name, done := fmt.Sprintf("generation %d", di.Generation), di.Status.ObservedGeneration == di.Generation && contract.IsFinal(di.Status.Phase)
	if contract.Detect(di) == contract.JobID {
		name, done = di.Status.JobID, di.Status.JobID == di.Status.JobIDFinished
	}
	switch {
	case name == "":
		return "no job yet"
	case done:
		return name + ", done"
	}
	return name
}
