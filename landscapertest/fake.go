// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

// Fake is a deployer for tests. The test defines the answers to the calls of the Fake. By default, every call succeeds.
// A Fake is safe for concurrent use. Create it with NewFake.
type Fake struct {
	mu             sync.Mutex
	queuedAnswers  map[contract.Action][]Answer
	defaultAnswers map[contract.Action]Answer
	hooks          extension.ReconcileExtensionHooks
	runtime        deployerlib.Runtime
	calls          []*Call
	running        map[types.NamespacedName]int
	overlaps       []string
	changed        chan struct{} // closed and replaced whenever the field `calls` changes
}

// NewFake returns a deployer whose calls all return nil.
func NewFake() *Fake {
	return &Fake{
		queuedAnswers:  map[contract.Action][]Answer{},
		defaultAnswers: map[contract.Action]Answer{},
		running:        map[types.NamespacedName]int{},
		changed:        make(chan struct{}),
	}
}

// QueueAnswers queues answers for the next calls with the given action, for any item. When the queue is empty, the
// answer that was set by SetDefaultAnswer applies. QueueAnswers returns f.
func (f *Fake) QueueAnswers(action contract.Action, answers ...Answer) *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queuedAnswers[action] = append(f.queuedAnswers[action], answers...)
	return f
}

// SetDefaultAnswer sets the answer to those calls with the given action for which no answer is queued. If answer is
// nil, these calls succeed. SetDefaultAnswer returns f.
func (f *Fake) SetDefaultAnswer(action contract.Action, answer Answer) *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.defaultAnswers[action] = answer
	return f
}

// RegisterHook registers a hook. Call it before the deployer is added to a manager. RegisterHook returns f.
func (f *Fake) RegisterHook(hook extension.ReconcileExtensionHook, hookTypes ...extension.HookType) *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hooks = f.hooks.RegisterHook(hook, hookTypes...)
	return f
}

// ExtensionHooks returns the hooks that were registered with RegisterHook.
func (f *Fake) ExtensionHooks() extension.ReconcileExtensionHooks {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hooks
}

// UseRuntime stores the Runtime that the library passes to the deployer.
func (f *Fake) UseRuntime(rt deployerlib.Runtime) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runtime = rt
	return nil
}

// Runtime returns the Runtime that the library passed to the deployer. It is empty until the deployer is added to a
// manager.
func (f *Fake) Runtime() deployerlib.Runtime {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runtime
}

// Reconcile calls the answer for ActionReconcile.
func (f *Fake) Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return f.handleCall(ctx, contract.ActionReconcile, Input{Context: lsCtx, Item: di, Target: target})
}

// Delete calls the answer for ActionDelete.
func (f *Fake) Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return f.handleCall(ctx, contract.ActionDelete, Input{Context: lsCtx, Item: di, Target: target})
}

// ForceReconcile calls the answer for ActionForceReconcile.
func (f *Fake) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return f.handleCall(ctx, contract.ActionForceReconcile, Input{Context: lsCtx, Item: di, Target: target})
}

// Abort calls the answer for ActionAbort.
func (f *Fake) Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return f.handleCall(ctx, contract.ActionAbort, Input{Context: lsCtx, Item: di, Target: target})
}

// handleCall logs a call, runs the answer, and logs the end of the call. A panic also ends the call.
func (f *Fake) handleCall(ctx context.Context, action contract.Action, in Input) (err error) {
	in.Action = action
	call, answer := f.startCall(ctx, in)
	returned := false
	defer func() { f.completeCall(ctx, call, err, !returned) }()
	if answer != nil {
		err = answer(ctx, in)
	}
	returned = true
	return err
}

// startCall logs a call. It records a fault if another call for the item is running. It returns the call and the answer
// to it.
func (f *Fake) startCall(ctx context.Context, in Input) (*Call, Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := newCall(ctx, in)
	f.running[call.Item]++
	if n := f.running[call.Item]; n > 1 {
		f.overlaps = append(f.overlaps, fmt.Sprintf("%s: %d calls ran at the same time; the newest call has the action %s", call.Item, n, call.Action))
	}
	f.calls = append(f.calls, call)
	f.notify()
	answer := f.defaultAnswers[in.Action]
	if queue := f.queuedAnswers[in.Action]; len(queue) > 0 {
		answer, f.queuedAnswers[in.Action] = queue[0], slices.Clone(queue[1:])
	}
	return call, answer
}

// completeCall logs the end of a call.
func (f *Fake) completeCall(ctx context.Context, call *Call, err error, panicked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[call.Item]--
	call.Returned, call.Panicked, call.Err, call.Cause = true, panicked, err, context.Cause(ctx)
	f.notify()
}

// notify wakes up the goroutines that wait for calls.
func (f *Fake) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Resuming is a Fake that also implements deployerlib.Resumer. Use ActionResume to define answers for its Resume calls
// and to find these calls in the log.
type Resuming struct{ *Fake }

// ActionResume is the action of a call of Resuming.Resume.
const ActionResume contract.Action = "resume"

// Resume calls the answer for ActionResume.
func (r Resuming) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return r.handleCall(ctx, ActionResume, Input{Item: di, Target: target})
}

var (
	_ deployerlib.Deployer    = (*Fake)(nil)
	_ deployerlib.RuntimeUser = (*Fake)(nil)
	_ deployerlib.Resumer     = Resuming{}
)

// keyOf returns the key of an item.
func keyOf(di *lsv1alpha1.DeployItem) types.NamespacedName { return client.ObjectKeyFromObject(di) }
