// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
)

// limited is a client that reads lists page by page. It counts the memory of each response against the budgets until
// the response has been decoded.
type limited struct {
	client.Client // for methods that send no request
	limits        *Limits
	hit           func(string)

	// current is the client that sends the requests. A client remembers the resource and the scope of each kind, so it is
	// replaced when a discovery shows that one of them has changed.
	current atomic.Pointer[client.Client]
}

// plain returns the client that sends the requests.
func (c *limited) plain() client.Client { return *c.current.Load() }

// held runs a function that makes one call of a client. The memory of the responses counts against the budgets until
// the function has returned.
func held(ctx context.Context, call func(context.Context) error) error {
	ctx, release := ReserveMemory(ctx)
	defer release()
	return call(ctx)
}

func (c *limited) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return held(ctx, func(ctx context.Context) error { return c.plain().Get(ctx, key, obj, opts...) })
}

func (c *limited) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return held(ctx, func(ctx context.Context) error { return c.plain().Create(ctx, obj, opts...) })
}

func (c *limited) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return held(ctx, func(ctx context.Context) error { return c.plain().Update(ctx, obj, opts...) })
}

func (c *limited) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return held(ctx, func(ctx context.Context) error { return c.plain().Patch(ctx, obj, patch, opts...) })
}

func (c *limited) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return held(ctx, func(ctx context.Context) error { return c.plain().Apply(ctx, obj, opts...) })
}

func (c *limited) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return held(ctx, func(ctx context.Context) error { return c.plain().Delete(ctx, obj, opts...) })
}

func (c *limited) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return held(ctx, func(ctx context.Context) error { return c.plain().DeleteAllOf(ctx, obj, opts...) })
}

func (c *limited) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *limited) SubResource(name string) client.SubResourceClient {
	return &limitedPart{c.plain().SubResource(name)}
}

// List reads all pages of a list, unless the caller requests a single page with Limit or Continue.
func (c *limited) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Limit > 0 || o.Continue != "" || o.Raw != nil {
		return held(ctx, func(ctx context.Context) error { return c.plain().List(ctx, list, opts...) })
	}
	return c.pages(ctx, list, opts)
}

// pages reads all pages of a list into the given list.
func (c *limited) pages(ctx context.Context, list client.ObjectList, opts []client.ListOption) error {
	var items []runtime.Object
	total, page, next := int64(0), c.limits.PageSize, ""
	for {
		size, err := c.page(ctx, list, append(slices.Clip(opts), client.Limit(page), client.Continue(next)))
		if over, ok := errors.AsType[*LimitError](err); ok && over.Option == "Page" && page > 1 {
			page /= 2
			continue
		}
		if err != nil {
			return err
		}
		if total += size; total > c.limits.List {
			c.hit("list")
			return tooLarge("List", "all pages of a list", c.limits.List)
		}
		if next = list.GetContinue(); next == "" && items == nil {
			return nil
		}
		if items, err = moved(list, items); err != nil {
			return err
		}
		if next == "" {
			return meta.SetList(list, items)
		}
	}
}

// moved moves the items of a list to the end of `items`, and returns the result.
func moved(list client.ObjectList, items []runtime.Object) ([]runtime.Object, error) {
	found, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	return append(items, found...), meta.SetList(list, nil)
}

// page reads one page of a list, and returns the size of the response in bytes.
func (c *limited) page(ctx context.Context, list client.ObjectList, opts []client.ListOption) (int64, error) {
	ctx, h := budget.WithHold(ctx)
	defer h.Release()
	list.SetContinue("") // decoding does not reset fields that are absent from the page
	list.SetRemainingItemCount(nil)
	err := c.plain().List(ctx, list, opts...)
	return h.Size(), err
}

// limitedPart is like limited, but for a subresource.
type limitedPart struct{ client.SubResourceClient }

func (c *limitedPart) Get(ctx context.Context, obj, part client.Object, opts ...client.SubResourceGetOption) error {
	return held(ctx, func(ctx context.Context) error { return c.SubResourceClient.Get(ctx, obj, part, opts...) })
}

func (c *limitedPart) Create(ctx context.Context, obj, part client.Object, opts ...client.SubResourceCreateOption) error {
	return held(ctx, func(ctx context.Context) error { return c.SubResourceClient.Create(ctx, obj, part, opts...) })
}

func (c *limitedPart) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return held(ctx, func(ctx context.Context) error { return c.SubResourceClient.Update(ctx, obj, opts...) })
}

func (c *limitedPart) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return held(ctx, func(ctx context.Context) error { return c.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}

func (c *limitedPart) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return held(ctx, func(ctx context.Context) error { return c.SubResourceClient.Apply(ctx, obj, opts...) })
}
