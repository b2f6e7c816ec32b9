// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/deployers/helm"
)

// newPlan returns the settings of the command plan.
func (p *program) newPlan() (plan.Settings, error) {
	options, err := p.newOptions()
	return plan.Settings{
		Type: helm.Type, Targets: options.Targets, TargetLimits: options.TargetLimits,
		Plan: func(ctx context.Context, ls client.Reader, target *rest.Config, di *lsv1alpha1.DeployItem) (plan.Result, error) {
			lsCtx, err := readContext(ctx, ls, di)
			if err != nil {
				return nil, err
			}
			result, err := helm.Plan(ctx, ls, target, lsCtx, di, options)
			if err != nil && result.CountChanges()+result.Unchanged == 0 {
				return nil, err
			}
			return result, err
		},
	}, err
}

// readContext reads the Context of an item. It returns nil if the Context does not exist.
func readContext(ctx context.Context, ls client.Reader, di *lsv1alpha1.DeployItem) (*lsv1alpha1.Context, error) {
	key := types.NamespacedName{Namespace: di.Namespace, Name: di.Spec.Context}
	if key.Name == "" {
		key.Name = lsv1alpha1.DefaultContextName
	}
	out := &lsv1alpha1.Context{}
	if err := ls.Get(ctx, key, out); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get Context %s: %w", key, err)
	}
	return out, nil
}
