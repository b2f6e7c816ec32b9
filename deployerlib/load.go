// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"cmp"
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/targets"
)

// loader reads the arguments of a call besides the item.
type loader struct {
	client   client.Reader // from the cache
	resolver *targets.Resolver
	clock    clock.PassiveClock
	grace    time.Duration // for a deletion whose Target is missing
}

// load reads what a call needs: the Context object, the resolved target, and, for a deployment, a valid timeout and a
// configuration. For Abort nothing is required.
func (l *loader) load(ctx context.Context, a *attempt) (in inputs, err error) {
	item, action := a.session.Read(), a.decision.Action
	if action == contract.ActionAbort {
		in.context, _ = l.context(ctx, item)
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
	if in.context, err = l.context(ctx, item); err != nil {
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

// checkTargetNamespace returns an error for a deployment to a target of another namespace. What an older library
// deployed there can still be deleted.
func checkTargetNamespace(di *lsv1alpha1.DeployItem, action contract.Action) error {
	ref := di.Spec.Target
	if action == contract.ActionDelete || ref == nil || ref.Namespace == "" || ref.Namespace == di.Namespace {
		return nil
	}
	return ConfigError("spec.target.namespace", "is %q, but a target must be in the item's namespace %q", ref.Namespace, di.Namespace)
}

// context reads the Context that the item names. It applies the default name here and never to the item, because a
// later write would change its generation.
func (l *loader) context(ctx context.Context, di *lsv1alpha1.DeployItem) (*lsv1alpha1.Context, error) {
	key := client.ObjectKey{Namespace: di.Namespace, Name: contextName(di)}
	lsCtx := &lsv1alpha1.Context{}
	err := l.client.Get(ctx, key, lsCtx)
	if apierrors.IsNotFound(err) {
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

// resolve resolves the target. It returns nil if the item names none.
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

// The error of an item whose Target does not exist.
const (
	opResolveTarget      = "ResolveTarget"
	reasonTargetNotFound = "TargetNotFound"
)

// targetMissing returns the error of an item whose Target does not exist. For a deletion it is final after the grace
// period, because the objects may have been deleted with their cluster. A deployment waits for its Target until its
// deadline.
func (l *loader) targetMissing(a *attempt) error {
	if rest, waits := l.targetGrace(a, a.session.Working()); waits && rest <= 0 {
		return lserrors.NewError(opResolveTarget, reasonTargetNotFound,
			fmt.Sprintf("%s; it did not come back within %s", a.target.err, l.grace), lsv1alpha1.ErrorConfigurationProblem)
	}
	return lserrors.NewError(opResolveTarget, reasonTargetNotFound, a.target.err.Error())
}

// targetGrace returns how long a deletion still waits for its Target. waits is false if the attempt is not such a
// deletion. The grace period begins when this run first found the Target missing. Its lastError holds that time, and a
// new run begins without a lastError.
func (l *loader) targetGrace(a *attempt, item *lsv1alpha1.DeployItem) (rest time.Duration, waits bool) {
	if a.target.err == nil || !a.decision.Due || a.decision.Action != contract.ActionDelete {
		return 0, false
	}
	missed := a.began
	if e := item.Status.LastError; e != nil && e.Operation == opResolveTarget && e.Reason == reasonTargetNotFound {
		missed = e.LastTransitionTime.Time
	}
	return missed.Add(l.grace).Sub(l.clock.Now()), true
}
