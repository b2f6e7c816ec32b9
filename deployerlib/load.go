// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// load reads what a call needs: the Context object, the resolved target, and
// for a deployment a timeout and configuration that make sense. Abort must
// work on whatever is there, so there nothing is missing.
func (r *reconciler) load(ctx context.Context, c *cycle) error {
	if c.decision.Action == contract.Abort {
		c.lsCtx, _ = r.context(ctx, c)
		c.resolved, _ = r.resolve(ctx, c)
		return nil
	}
	if _, _, err := contract.Timeout(c.stored); err != nil {
		return err
	}
	err := checkTargetNamespace(c)
	if err != nil {
		return err
	}
	if c.resolved, err = r.resolve(ctx, c); err != nil {
		return err
	}
	if c.lsCtx, err = r.context(ctx, c); err != nil {
		return err
	}
	if c.decision.Action != contract.Delete && emptyConfig(c.stored) {
		return lserrors.NewError("Reconcile", "ProviderConfigurationMissing", "spec.config: required, but missing or empty",
			lsv1alpha1.ErrorConfigurationProblem)
	}
	return nil
}

// emptyConfig tells that an item has no provider configuration.
func emptyConfig(di *lsv1alpha1.DeployItem) bool {
	return di.Spec.Configuration == nil || len(di.Spec.Configuration.Raw) == 0
}

// checkTargetNamespace refuses to deploy to the target of another namespace.
// What was deployed already, by a library that looked past the namespace, can be deleted.
func checkTargetNamespace(c *cycle) error {
	ref := c.stored.Spec.Target
	if c.decision.Action == contract.Delete || ref == nil || ref.Namespace == "" || ref.Namespace == c.key.Namespace {
		return nil
	}
	return ConfigError("spec.target.namespace", "is %q, but a target must be in the item's namespace %q", ref.Namespace, c.key.Namespace)
}

// context reads the Context that the item names. The default is applied here,
// never to the item (a later write would change its generation).
func (r *reconciler) context(ctx context.Context, c *cycle) (*lsv1alpha1.Context, error) {
	key := client.ObjectKey{Namespace: c.key.Namespace, Name: contextName(c.stored)}
	lsCtx := &lsv1alpha1.Context{}
	err := r.client.Get(ctx, key, lsCtx)
	if apierrors.IsNotFound(err) {
		return nil, lserrors.NewError("LoadContext", "ContextNotFound", fmt.Sprintf("context %q not found in namespace %q", key.Name, key.Namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("get Context %s: %w", key, err)
	}
	return lsCtx, nil
}

// contextName is the name of the Context that an item uses.
func contextName(di *lsv1alpha1.DeployItem) string {
	return or(di.Spec.Context, lsv1alpha1.DefaultContextName)
}

// resolve makes the target ready for use; nil when the item names none.
func (r *reconciler) resolve(ctx context.Context, c *cycle) (*lsv1alpha1.ResolvedTarget, error) {
	if c.targetErr != nil {
		return nil, r.targetMissing(c)
	}
	if c.target == nil {
		return nil, nil
	}
	resolved, err := r.resolver.Resolve(ctx, c.target)
	if err != nil {
		return nil, lserrors.NewWrappedError(err, "ResolveTarget", "TargetNotResolved", err.Error(), contract.Codes(err)...)
	}
	return resolved, nil
}
