// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// operationKind is the kind of an operation.
type operationKind string

const (
	kindInstall   operationKind = "install"
	kindUpgrade   operationKind = "upgrade"
	kindRollback  operationKind = "rollback"
	kindUninstall operationKind = "uninstall"
	// kindRepair applies the objects of the current revision again. It creates no revision and runs no hooks.
	kindRepair operationKind = "repair"
)

// operation is an operation on a release that is under way. It consists of steps. A step that has to wait returns an
// error of deployerlib.WaitFor, and the next call of the deployer continues with the same step. An operation is in memory
// only. If it is lost, its record is still pending, and the next operation marks it as failed.
type operation struct {
	operationRecord
	operationContent

	kind     operationKind
	inputs   inputs
	settings OperationConfig
	former   []release.Revision // the revisions that existed before the operation
	began    time.Time
	redactor *release.Redactor

	next     int            // index of the next step
	bound    time.Duration  // how long the operation waits until the objects are ready; 0 until it begins to wait
	hooks    hookState      // the hooks that run now
	replaced *FormerRelease // the release that an uninstall removes because another one has replaced it, or nil
	cause    error          // the failure of the operation that a rollback or uninstall reverts
	failure  error          // why the operation failed; nil while it is under way
	onEnd    func()         // called when the operation has ended; may be nil
	metrics  *Metrics       // counts the operation; nil until the first step. operationRecord.mu guards it
}

// operationContent is what an operation applies.
type operationContent struct {
	crds     []release.Manifest
	desired  []apply.Desired
	document map[string]any // the values that exports without fromResource refer to; may be nil
}

// newOperation returns an operation on a release that begins now.
func (r *run) newOperation(kind operationKind, in inputs, storage *release.Storage) *operation {
	var values map[string]any
	if r.config != nil {
		values = r.config.Values
	}
	return &operation{
		operationRecord: operationRecord{storage: storage, done: make(chan any)},
		kind:            kind, inputs: in, began: r.now(), redactor: release.NewRedactor(values),
	}
}

// step is a step of an operation.
type step func(ctx context.Context, r *run, op *operation) error

// steps returns the steps of an operation.
func (op *operation) steps() []step {
	hooks := func(event release.HookEvent) step {
		return func(ctx context.Context, r *run, op *operation) error {
			return r.newHookRunner(op).runHooks(ctx, event)
		}
	}
	switch op.kind {
	case kindInstall:
		return []step{installDefinitions, createNamespace, checkOwners, createRecord, hooks(release.PreInstall), applyObjects, awaitObjects, hooks(release.PostInstall), runTests, succeed}
	case kindUpgrade:
		return []step{installDefinitions, createNamespace, checkOwners, createRecord, hooks(release.PreUpgrade), applyObjects, awaitObjects, hooks(release.PostUpgrade), runTests, succeed}
	case kindRollback:
		return []step{createRecord, hooks(release.PreRollback), applyObjects, awaitObjects, hooks(release.PostRollback), succeed}
	case kindUninstall:
		return []step{markUninstalling, hooks(release.PreDelete), removeObjects, hooks(release.PostDelete), purgeRecords}
	case kindRepair:
		return []step{applyObjects}
	}
	return nil
}

// now returns the current time.
func (r *run) now() time.Time { return r.deployer.manager.GetRuntime().Clock.Now() }

// continueOperation runs the steps of an operation until one of them has to wait, or the operation has ended.
func (r *run) continueOperation(ctx context.Context, op *operation) error {
	r.deployer.options.Metrics.begin(op)
	r.EngineOptions.Hide = op.redactor.Texts()
	r.EngineOptions.Recreate = op.settings.Force
	steps := op.steps()
	for op.failure == nil && op.next < len(steps) {
		err := steps[op.next](ctx, r, op)
		if err == nil {
			op.next++
			continue
		}
		if errors.Is(err, errRecordTaken) {
			r.endOperation(op)
			return err
		}
		if op.failure = r.failureOf(op, err); op.failure == nil {
			return r.limitWait(op, err) // the next call continues
		}
	}
	if op.failure != nil {
		return r.failOperation(ctx, op)
	}
	r.endOperation(op)
	if op.cause != nil {
		return op.cause
	}
	return nil
}

// endOperation removes an operation from memory.
func (r *run) endOperation(op *operation) {
	result := resultInterrupted
	if op.failure != nil {
		result = resultFailed
	} else if op.next >= len(op.steps()) {
		result = resultSucceeded
	}
	op.end(r.now(), result)
	if r.memory.operation == op {
		r.memory.operation = nil
	}
}

// end marks the operation as ended. From now on, its record is not written any more. A zero time means that the time is
// not known. Further calls do nothing.
func (op *operation) end(now time.Time, result string) {
	op.mu.Lock()
	ended, metrics := op.ended, op.metrics
	op.ended = true
	op.mu.Unlock()
	if ended {
		return
	}
	close(op.done)
	if metrics != nil {
		metrics.end(op, now, result)
	}
	if op.onEnd != nil {
		op.onEnd()
	}
}

// lastRelease returns a copy of the release in the provider status, with the name and namespace of the configuration.
func (r *run) lastRelease() *ReleaseStatus {
	out := &ReleaseStatus{}
	if r.release != nil {
		*out = *r.release
	}
	if r.config != nil {
		if former := (FormerRelease{Name: out.Name, Namespace: out.Namespace}); out.isHelm() && former != (FormerRelease{Name: r.config.Name, Namespace: r.config.Namespace}) {
			out.Former = append(out.Former, former)
		}
		out.Name, out.Namespace = r.config.Name, r.config.Namespace
		out.Former = slices.DeleteFunc(slices.Clone(out.Former), func(former FormerRelease) bool {
			return former == FormerRelease{Name: out.Name, Namespace: out.Namespace}
		})
	}
	return out
}

// setLastRelease sets the release in the provider status, in memory.
func (r *run) setLastRelease(last *ReleaseStatus) error {
	r.release = last
	return setRelease(r.Run, last)
}
