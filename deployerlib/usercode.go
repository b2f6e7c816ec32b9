// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/deployerkit/deployerkit/deployerlib/internal/guard"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/patch"
)

// runHooks runs the hooks of one type. Before the item is ours, hooks get a
// copy whose changes are dropped; afterwards they may change its status.
func (r *reconciler) runHooks(ctx context.Context, c *cycle, t extension.HookType) (*extension.HookResult, error) {
	if len(r.hooks[t]) == 0 {
		return nil, nil
	}
	ctx = r.seen.hooks(ctx, c)
	if c.stored == nil {
		return r.hooks.ExecuteHooks(ctx, c.log, nil, nil, t)
	}
	if !c.ours {
		return r.hooks.ExecuteHooks(ctx, c.log, c.stored.DeepCopy(), c.target, t)
	}
	c.own()
	if c.protected == nil {
		c.protect()
	}
	phase, lastError := c.item.Status.Phase, c.item.Status.LastError
	ctx = c.running.in(ctx)
	res, err := r.hooks.ExecuteHooks(ctx, c.log, c.item, c.target, t)
	c.item.Status.Phase, c.item.Status.LastError = phase, lastError
	if faulty := r.restore(c, "a "+string(t)+" hook"); faulty != nil && err == nil {
		res, err = nil, faulty
	}
	return res, err
}

// restore undoes what user code must not change on the working copy. A changed
// spec is an error that names the path: it would start the item anew.
func (r *reconciler) restore(c *cycle, who string) error {
	guard.Protect(c.protected, &c.item.Status)
	if !apiequality.Semantic.DeepEqual(c.item.ObjectMeta, c.base.ObjectMeta) {
		c.log.V(1).Info("metadata changed in memory is dropped", "by", who)
		c.base.ObjectMeta.DeepCopyInto(&c.item.ObjectMeta)
	}
	// The first comparison knows bytes; the second takes a configuration byte by byte, which is milliseconds.
	if reflect.DeepEqual(c.item.Spec, c.stored.Spec) || apiequality.Semantic.DeepEqual(c.item.Spec, c.stored.Spec) {
		return r.checkPatch(c, who)
	}
	path := specPath(c.stored, c.item)
	c.stored.Spec.DeepCopyInto(&c.item.Spec)
	return lserrors.NewError("CheckDeployItem", "SpecChanged", fmt.Sprintf("%s changed %s, which no deployer may do", who, path),
		lsv1alpha1.ErrorInternalProblem)
}

// checkPatch drops a running patch that cannot be made, and says why.
func (r *reconciler) checkPatch(c *cycle, who string) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	err := c.running.check(c.item, who)
	if err == nil {
		return nil
	}
	c.log.Info("a patch is dropped", "error", err.Error())
	return refusedPatch(err)
}

// specPath names where two specs differ.
func specPath(stored, changed *lsv1alpha1.DeployItem) string {
	probe := stored.DeepCopy()
	changed.Spec.DeepCopyInto(&probe.Spec)
	_, err := itempatch.Diff(stored, probe)
	if field, ok := errors.AsType[*patch.FieldError](err); ok {
		return field.Path
	}
	return "spec"
}

// contained calls the deployer; a panic becomes an error.
func (r *reconciler) contained(ctx context.Context, c *cycle, do action) (err error) {
	defer func() {
		if v := recover(); v != nil {
			p := &PanicError{Value: v, Stack: debug.Stack()}
			c.log.Error(p, "deployer panicked", "stack", string(p.Stack))
			r.seen.panicked()
			err = p
		}
	}()
	ctx = c.running.in(context.WithValue(ctx, cycleKey{}, c))
	return do(ctx, c.lsCtx, c.item, c.resolved)
}
