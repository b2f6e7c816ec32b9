// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// limitedPart is limited for a subresource.
type limitedPart struct{ client.SubResourceClient }

func (c *limitedPart) Get(ctx context.Context, obj, part client.Object, opts ...client.SubResourceGetOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return c.SubResourceClient.Get(ctx, obj, part, opts...)
}

func (c *limitedPart) Create(ctx context.Context, obj, part client.Object, opts ...client.SubResourceCreateOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return c.SubResourceClient.Create(ctx, obj, part, opts...)
}

func (c *limitedPart) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return c.SubResourceClient.Update(ctx, obj, opts...)
}

func (c *limitedPart) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return c.SubResourceClient.Patch(ctx, obj, patch, opts...)
}

func (c *limitedPart) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return c.SubResourceClient.Apply(ctx, obj, opts...)
}
