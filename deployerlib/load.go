// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"cmp"
	"context"
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

	ignoresContext bool // the deployer does not read the Context, so the one in the cache is good enough
}

// load reads the Context object and resolves the target. It returns an error if the Context or the target does not
// exist, or if the timeout in the item is invalid. For Reconcile and ForceReconcile, it also returns an error if the
// target is in another namespace, or if the item has no configuration. For Abort, it never returns an error.
func (l *loader) load(ctx context.Context, a *attempt) (in inputs, err error) {
	item, action := a.session.Read(), a.decision.Action
	if action == contract.ActionAbort {
		in.context, _ = l.context(ctx, item, a.since)
		in.target, _ = l.resolve(ctx, a)
		return in, nil
	}
	if _, _, err := contract.Timeout(item); err != nil {
		return in, err
	}
	if err := checkTargetNamespace(item, action); err != nil {
		return in, err
	}
	if in.target, err = l.resolve(ctx, a); err != nil {
		return in, err
	}
	since := a.since
	if l.ignoresContext {
		since = time.Time{}
	}
	if in.context, err = l.context(ctx, item, since); err != nil {
		return in, err
	}
	if action != contract.ActionDelete && emptyConfig(item) {
		return in, lserrors.NewError("Reconcile", "ProviderConfigurationMissing", "spec.config: required, but missing or empty",
			lsv1alpha1.ErrorConfigurationProblem)
	}
	return in, nil
}

// emptyConfig reports whether an item has no provider configuration.
func emptyConfig(di *lsv1alpha1.DeployItem) bool {
	return di.Spec.Configuration == nil || len(di.Spec.Configuration.Raw) == 0
}

// checkTargetNamespace returns an error for a deployment to a target of another namespace. It allows a deletion,
// because an older library may have deployed objects to such a target.
func checkTargetNamespace(di *lsv1alpha1.DeployItem, action contract.Action) error {
	ref := di.Spec.Target
	if action == contract.ActionDelete || ref == nil || ref.Namespace == "" || ref.Namespace == di.Namespace {
		return nil
	}
	return ConfigError("spec.target.namespace", "is %q, but a target must be in the item's namespace %q", ref.Namespace, di.Namespace)
}

// context reads the Context that the item names. It does not set the default name in the item, because a later write
// would then change the item's generation.
func (l *loader) context(ctx context.Context, di *lsv1alpha1.DeployItem, since time.Time) (*lsv1alpha1.Context, error) {
	key := client.ObjectKey{Namespace: di.Namespace, Name: contextName(di)}
	lsCtx, err := l.contexts.get(ctx, key, since)
	if notfound.IsProof(err) {
		return nil, lserrors.NewError("LoadContext", "ContextNotFound", fmt.Sprintf("context %q not found in namespace %q", key.Name, key.Namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("get Context %s: %w", key, err)
	}
	return lsCtx, nil
}

// contextName returns the name of the Context that an item uses.
func contextName(di *lsv1alpha1.DeployItem) string {
	return cmp.Or(di.Spec.Context, lsv1alpha1.DefaultContextName)
}

// readTarget implements Runtime.GetTarget.
func (l *loader) readTarget(ctx context.Context, key client.ObjectKey) (*lsv1alpha1.Target, error) {
	var since time.Time
	if a := callFrom(ctx); a != nil {
		since = a.since
	}
	return l.targets.get(ctx, key, since)
}

// resolve resolves the target. It returns nil if the item names no target.
func (l *loader) resolve(ctx context.Context, a *attempt) (*lsv1alpha1.ResolvedTarget, error) {
	if a.target.err != nil {
		return nil, l.targetMissing(a)
	}
	if a.target.object == nil {
		return nil, nil
	}
	resolved, err := l.resolver.Resolve(ctx, a.target.object)
	if err != nil {
		return nil, lserrors.NewWrappedError(err, "ResolveTarget", "TargetNotResolved", err.Error(), contract.Codes(err)...)
	}
	return resolved, nil
}

// These are the operation and the reason in the error for an item whose Target does not exist.
const (
	opResolveTarget      = "ResolveTarget"
	reasonTargetNotFound = "TargetNotFound"
)

// targetMissing returns the error for an item whose Target does not exist. A deployment waits for its Target until the
// deadline of the run. A deletion waits only for the grace period, because its Target may never exist again: the
// cluster of the Target may be gone, together with the deployed objects. After the grace period, the error has the code
// ERR_CONFIGURATION_PROBLEM, which ends the run.
func (l *loader) targetMissing(a *attempt) error {
	if rest, waits := l.targetGrace(a, a.decision, a.session.Working()); waits && rest <= 0 {
		return lserrors.NewError(opResolveTarget, reasonTargetNotFound,
			fmt.Sprintf("%s; it was still missing after %s", a.target.err, l.grace), lsv1alpha1.ErrorConfigurationProblem)
	}
	return lserrors.NewError(opResolveTarget, reasonTargetNotFound, a.target.err.Error())
}

// targetGrace returns how long a deletion still waits for its Target. The result `waits` is true only if the attempt
// belongs to a deletion and the Target of the item is missing. The grace period begins when the run first finds the
// Target missing. The error in status.lastError contains the time at which the period began. When a new run begins,
// status.lastError is cleared, and the run gets a new grace period.
func (l *loader) targetGrace(a *attempt, d contract.Decision, item *lsv1alpha1.DeployItem) (rest time.Duration, waits bool) {
	if a.target.err == nil || !d.Due || d.Action != contract.ActionDelete {
		return 0, false
	}
	missed := a.began
	if e := item.Status.LastError; e != nil && e.Operation == opResolveTarget && e.Reason == reasonTargetNotFound {
		missed = e.LastTransitionTime.Time
	}
	return missed.Add(l.grace).Sub(l.clock.Now()), true
}
