// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/targets"
)

// checkResponsibility reads the target and compares it with the selectors. The
// target is kept also when it does not match: a hook may overrule the verdict.
func (r *reconciler) checkResponsibility(ctx context.Context, c *cycle) (verdict, error) {
	if c.stored.Spec.Target == nil {
		return proceed, nil
	}
	target := &lsv1alpha1.Target{}
	key := client.ObjectKey{Namespace: c.key.Namespace, Name: c.stored.Spec.Target.Name}
	err := r.client.Get(ctx, key, target)
	if apierrors.IsNotFound(err) {
		c.targetErr = fmt.Errorf("target %q not found in namespace %q", key.Name, key.Namespace)
		return r.responsibleWithoutTarget(c), nil
	}
	if err != nil {
		return stop, fmt.Errorf("get Target %s: %w", key, err)
	}
	c.target = target
	matches, err := targets.Matches(target, r.args.TargetSelectors)
	if err != nil {
		return stop, fmt.Errorf("target selectors: %w", err)
	}
	if !matches {
		return stop, nil
	}
	return proceed, nil
}

// responsibleWithoutTarget decides for an item whose Target is missing: with
// selectors, only the deployer that the item already knows takes it, so that
// fenced deployers do not fight over its status.
func (r *reconciler) responsibleWithoutTarget(c *cycle) verdict {
	if len(r.args.TargetSelectors) == 0 || c.stored.Status.Deployer.Name == r.args.Name {
		return proceed
	}
	return stop
}

// labelSet returns the labels of an item.
func labelSet(di *lsv1alpha1.DeployItem) labels.Set { return di.Labels }
