// SPDX-License-Identifier: Apache-2.0

package race

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewBare returns a contender that sends all server-side-apply patches in each leg and does nothing else. The patches
// are the same as those of Engine. NewBare has no inventory and no owners, and it does not handle order, conflicts or
// errors. A program that writes every object cannot be much faster.
func NewBare() Contender {
	return Contender{Name: "bare loop", Start: func(_ context.Context, field *Workload) (Runner, error) {
		cl, err := NewClient(field.ControlPlane.Config)
		return &bare{client: cl}, err
	}}
}

type bare struct {
	client client.Client
	items  []Item
}

func (b *bare) Load(_ context.Context, items []Item) error {
	for _, item := range items {
		for _, o := range item.Objects {
			item.Owner.Mark(o)
		}
	}
	b.items = items
	return nil
}

func (b *bare) Run(ctx context.Context) error {
	return Each(ctx, AtOnce, b.items, func(ctx context.Context, _ int, item Item) error {
		owner := client.FieldOwner(item.Owner.FieldManager())
		return Each(ctx, Concurrency, item.Objects, func(ctx context.Context, _ int, o *unstructured.Unstructured) error {
			if err := b.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), owner, client.ForceOwnership); err != nil {
				return fmt.Errorf("apply %s: %w", o.GetName(), err)
			}
			return nil
		})
	})
}

func (*bare) Stop() error { return nil }
