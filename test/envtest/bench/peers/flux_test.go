// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"context"

	"github.com/fluxcd/pkg/ssa"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/test/envtest/bench/race"
)

// newFlux returns a contender that calls ApplyAll of Flux's library, as kustomize-controller does. It applies as many
// objects concurrently as the other contenders do. Flux's default is 4.
func newFlux() race.Contender {
	return race.Contender{Name: "fluxcd/pkg/ssa ApplyAll", Start: func(_ context.Context, field *race.Workload) (race.Runner, error) {
		cl, err := race.NewClient(field.ControlPlane.Config)
		return &fluxRunner{client: cl}, err
	}}
}

type fluxRunner struct {
	client client.Client
	items  []race.Item
}

func (f *fluxRunner) Load(_ context.Context, items []race.Item) error {
	f.items = items
	return nil
}

func (f *fluxRunner) Run(ctx context.Context) error {
	return race.Each(ctx, race.AtOnce, f.items, func(ctx context.Context, _ int, item race.Item) error {
		manager := ssa.NewResourceManager(f.client, nil, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
		manager.SetConcurrency(race.Concurrency)
		manager.SetOwnerLabels(item.Objects, item.Owner.Name, item.Owner.Namespace)
		_, err := manager.ApplyAll(ctx, item.Objects, ssa.DefaultApplyOptions())
		return err
	})
}

func (*fluxRunner) Stop() error { return nil }
