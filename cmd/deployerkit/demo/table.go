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

// maxEvent is the maximum length of the text of an event.
const maxEvent = 100

// table records the state of deploy items, Installations and Executions. It is safe for concurrent use.
type table struct {
	mu     sync.Mutex
	rows   map[string]row    // observed objects by key, see newRow
	events map[string]string // last call of the deployer for each item
	hooks  map[hookPoint]int // number of hook calls
}

// hookPoint is a hook point of an item. The Start hook has no item.
type hookPoint struct {
	item string
	hook extension.HookType
}

func newTable() *table {
	return &table{rows: map[string]row{}, events: map[string]string{}, hooks: map[hookPoint]int{}}
}

// recordHook is called at every hook point. It counts and logs the call and returns no result.
func (t *table) recordHook(_ context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, hook extension.HookType) (*extension.HookResult, error) {
	log.Info("hook", "hookType", string(hook))
	point := hookPoint{hook: hook}
	if di != nil {
		point.item = di.Name
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hooks[point]++
	return nil, nil
}

// recordCall records a call of a method of the deployer. It ignores all other kinds of steps.
func (t *table) recordCall(s deployerlib.Step) {
	if s.Kind != deployerlib.StepCall {
		return
	}
	event := s.Name + " was called"
	if reason, _, waits := deployerlib.AsWait(s.Err); waits {
		event = s.Name + " is waiting for " + reason
	} else if s.Err != nil {
		event = s.Name + " failed: " + s.Err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events[s.Item.Name] = contract.OneLine(event, maxEvent)
}

// eventHandler returns an event handler that records the observed objects.
func (t *table) eventHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    t.recordObject,
		UpdateFunc: func(_, obj any) { t.recordObject(obj) },
		DeleteFunc: t.recordDeletion,
	}
}

func (t *table) recordObject(obj any) {
	if key, r, ok := newRow(obj); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rows[key] = r
	}
}

func (t *table) recordDeletion(obj any) {
	if late, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = late.Obj
	}
	if key, r, ok := newRow(obj); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rows[key] = row{order: r.order, name: r.name, phase: "(gone)"}
		delete(t.events, key)
	}
}

// listRows returns the rows in the order in which they are displayed.
func (t *table) listRows() []row {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := map[string]int{}
	for point, n := range t.hooks {
		calls[point.item] += n
	}
	rows := make([]row, 0, len(t.rows))
	for key, r := range t.rows {
		r.hooks, r.event = calls[key], cmp.Or(r.event, t.events[key])
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.order, b.order) })
	return rows
}

// countHooks returns the number of calls of a hook for an item.
func (t *table) countHooks(item string, hook extension.HookType) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hooks[hookPoint{item, hook}]
}

// sumHooks returns the number of calls of each hook.
func (t *table) sumHooks() map[extension.HookType]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	sums := map[extension.HookType]int{}
	for point, n := range t.hooks {
		sums[point.hook] += n
	}
	return sums
}

// summarizeHooks returns the number of calls of each hook as text, in the order in which a reconcile reaches the hooks.
func (t *table) summarizeHooks() string {
	sums := t.sumHooks()
	var parts []string
	for _, hook := range extension.AllHookTypes() {
		parts = append(parts, fmt.Sprintf("%s %d", hook, sums[hook]))
	}
	return strings.Join(parts, ", ")
}

// row is a row of the table: a deploy item, an Installation or an Execution.
type row struct {
	order string // sort key
	name  string
	phase string
	job   string
	hooks int    // hook calls so far
	event string // the current error, or the last call of the deployer
}

// newRow returns the row for an object and the key of the row. The key of a deploy item is its name. The key of any
// other object consists of its kind and its name.
func newRow(obj any) (key string, r row, ok bool) {
	switch o := obj.(type) {
	case *lsv1alpha1.DeployItem:
		return o.Name, newItemRow(o), true
	case *lsv1alpha1.Installation:
		s := o.Status
		r = row{order: o.Name + "/0", name: "Installation " + o.Name, phase: formatPhase(s.InstallationPhase), job: formatJob(s.JobID, s.JobIDFinished)}
		if s.InstallationPhase.IsFailed() {
			r.event = formatError(s.LastError)
		}
	case *lsv1alpha1.Execution:
		s := o.Status
		r = row{order: o.Name + "/1", name: "Execution " + o.Name, phase: formatPhase(s.ExecutionPhase), job: formatJob(s.JobID, s.JobIDFinished)}
		if s.ExecutionPhase.IsFailed() {
			r.event = formatError(s.LastError)
		}
	}
	return r.name, r, r.name != ""
}

// newItemRow returns the row for a deploy item. If Landscaper has created the item, the row contains the name in the
// blueprint, and is below the row of the Execution.
func newItemRow(di *lsv1alpha1.DeployItem) row {
	r := row{order: di.Name, name: di.Name, phase: formatPhase(di.Status.Phase), event: formatError(di.Status.LastError)}
	if name := di.Labels[lsv1alpha1.ExecutionManagedNameLabel]; name != "" {
		r.order, r.name = di.Labels[lsv1alpha1.ExecutionManagedByLabel]+"/2/"+name+"/"+di.Name, "DeployItem "+name
	}
	switch contract.DetectRevision(di) {
	case contract.RevisionJobID:
		r.job = formatJob(di.Status.JobID, di.Status.JobIDFinished)
	case contract.RevisionAnnotation:
		r.job = fmt.Sprintf("generation %d", di.Generation)
		if di.Status.ObservedGeneration == di.Generation && contract.IsFinal(di.Status.Phase) {
			r.job += ", done"
		}
	}
	return r
}

// formatPhase returns a phase as text. The text for an empty phase is "(new)".
func formatPhase[T ~string](phase T) string { return cmp.Or(string(phase), "(new)") }

// formatError returns an error as one line, or "" if there is none.
func formatError(e *lsv1alpha1.Error) string {
	if e == nil {
		return ""
	}
	return contract.OneLine(e.Reason+": "+e.Message, maxEvent)
}

// formatJob returns the beginning of the ID of a job. If the job is finished, formatJob adds "done".
func formatJob(id, finished string) string {
	const enough, long = 8, 36 // the length of the shown prefix, and the length of a UUID
	text := id
	if len(id) >= long {
		text = id[:enough]
	}
	switch id {
	case "":
		return "no job yet"
	case finished:
		return text + ", done"
	}
	return text
}
