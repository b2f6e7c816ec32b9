// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/targets"
)

// loader loads the arguments of a deployer call, except for the item.
type loader struct {
	targets  *freshReader[*lsv1alpha1.Target]
	contexts *freshReader[*lsv1alpha1.Context]
	resolver *targets.Resolver
	clock    clock.PassiveClock
	grace    time.Duration // the grace period of a deletion whose Target is missing

	ignoresContext        bool // the deployer does not read the Context, so the one in the cache is good enough
	deletesWithoutContext bool // Delete does not need the Context
}

// load reads the Context object and resolves the target. It returns an error if the Context or the target does not
// exist, or if the timeout in the item is invalid. For Reconcile and ForceReconcile, it also returns an error if the
// target is in another namespace, or if the item has no configuration. For Abort, it never returns an error.
func (l *loader) load(ctx context.Context, a *attempt) (in callArgs, err error) {
	item, action := a.session.GetOriginal(), a.getDecision().Action
	if action == contract.ActionAbort {
		in.context, _ = l.getContext(ctx, item, a.notBefore)
		in.target, _ = l.resolveTarget(ctx, a)
		return in, nil
	}
	if _, _, err := contract.Timeout(item); err != nil {
		return in, err
	}
	if err := checkTargetNamespace(item, action); err != nil {
		return in, err
	}
	if in.target, err = l.resolveTarget(ctx, a); err != nil {
		return in, err
	}
	since := a.notBefore
	if l.ignoresContext {
		since = time.Time{}
	}
	in.context, err = l.getContext(ctx, item, since)
	if isContextMissing(err) && action == contract.ActionDelete && l.deletesWithoutContext {
		err = nil
	}
	if err != nil {
		return in, err
	}
	if action != contract.ActionDelete && isConfigEmpty(item) {
		return in, lserrors.NewError("Reconcile", "ProviderConfigurationMissing", "spec.config: required, but missing or empty",
			lsv1alpha1.ErrorConfigurationProblem)
	}
	return in, nil
}

// isConfigEmpty reports whether an item has no provider configuration.
func isConfigEmpty(di *lsv1alpha1.DeployItem) bool {
	return di.Spec.Configuration == nil || len(di.Spec.Configuration.Raw) == 0
}

// checkTargetNamespace returns an error for a deployment to a target of another namespace. It allows a deletion,
// because an older library may have deployed objects to such a target.
func checkTargetNamespace(di *lsv1alpha1.DeployItem, action contract.Action) error {
	ref := di.Spec.Target
	if action == contract.ActionDelete || ref == nil || ref.Namespace == "" || ref.Namespace == di.Namespace {
		return nil
	}
	return NewConfigError("spec.target.namespace", "is %q, but a target must be in the item's namespace %q", ref.Namespace, di.Namespace)
}

// getContext reads the Context that the item names. It does not set the default name in the item, because a later write
// would then change the item's generation.
func (l *loader) getContext(ctx context.Context, di *lsv1alpha1.DeployItem, since time.Time) (*lsv1alpha1.Context, error) {
	key := client.ObjectKey{Namespace: di.Namespace, Name: getContextName(di)}
	lsCtx, err := l.contexts.get(ctx, key, since)
	if notfound.IsProof(err) {
		return nil, lserrors.NewError("LoadContext", reasonContextNotFound, fmt.Sprintf("context %q not found in namespace %q", key.Name, key.Namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("get Context %s: %w", key, err)
	}
	return lsCtx, nil
}

// reasonContextNotFound is the reason in the error for an item whose Context does not exist.
const reasonContextNotFound = "ContextNotFound"

// isContextMissing reports whether the error means that the Context does not exist.
func isContextMissing(err error) bool {
	coded, ok := errors.AsType[*lserrors.Error](err)
	return ok && coded.LandscaperError().Reason == reasonContextNotFound
}

// getContextName returns the name of the Context that an item uses.
func getContextName(di *lsv1alpha1.DeployItem) string {
	return cmp.Or(di.Spec.Context, lsv1alpha1.DefaultContextName)
}

// readTarget implements Runtime.GetTarget.
func (l *loader) readTarget(ctx context.Context, key client.ObjectKey) (*lsv1alpha1.Target, error) {
	var since time.Time
	if a := getRunningAttempt(ctx); a != nil {
		since = a.notBefore
	}
	return l.targets.get(ctx, key, since)
}

// resolveTarget resolves the target. It returns nil if the item names no target.
func (l *loader) resolveTarget(ctx context.Context, a *attempt) (*lsv1alpha1.ResolvedTarget, error) {
	if a.target.err != nil {
		return nil, l.newMissingTargetError(a)
	}
	if a.target.object == nil {
		return nil, nil
	}
	resolved, err := l.resolver.Resolve(ctx, a.target.object)
	if err != nil {
		return nil, lserrors.NewWrappedError(err, "ResolveTarget", "TargetNotResolved", err.Error(), contract.ErrorCodes(err)...)
	}
	return resolved, nil
}

// These are the operation and the reason in the error for an item whose Target does not exist.
const (
	opResolveTarget      = "ResolveTarget"
	reasonTargetNotFound = "TargetNotFound"
)

// newMissingTargetError returns the error for an item whose Target does not exist. A deployment waits for its Target
// until the deadline of the run. A deletion waits only for the grace period, because its Target may never exist again:
// the cluster of the Target may be gone, together with the deployed objects. After the grace period, the error has the
// code ERR_CONFIGURATION_PROBLEM, which ends the run.
func (l *loader) newMissingTargetError(a *attempt) error {
	if rest, waits := l.getTargetGracePeriod(a, a.getDecision(), a.session.GetWorkingCopy()); waits && rest <= 0 {
		return lserrors.NewError(opResolveTarget, reasonTargetNotFound,
			fmt.Sprintf("%s; it was still missing after %s", a.target.err, l.grace), lsv1alpha1.ErrorConfigurationProblem)
	}
	return lserrors.NewError(opResolveTarget, reasonTargetNotFound, a.target.err.Error())
}

// getTargetGracePeriod returns how long a deletion still waits for its Target. The result `waits` is true only if the
// attempt belongs to a deletion and the Target of the item is missing. The grace period begins when the run first finds
// the Target missing. The error in status.lastError contains the time at which the period began. When a new run begins,
// status.lastError is cleared, and the run gets a new grace period.
func (l *loader) getTargetGracePeriod(a *attempt, d contract.Decision, item *lsv1alpha1.DeployItem) (rest time.Duration, waits bool) {
	if a.target.err == nil || !d.Due || d.Action != contract.ActionDelete {
		return 0, false
	}
	missed := a.began
	if e := item.Status.LastError; e != nil && e.Operation == opResolveTarget && e.Reason == reasonTargetNotFound {
		missed = e.LastTransitionTime.Time
	}
	return missed.Add(l.grace).Sub(l.clock.Now()), true
}
