// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client is a client that reads lists page by page. The memory of each response counts against the budgets until the
// response has been decoded.
type Client struct {
	client.Client // for methods that send no request
	limits        *Limits
	countExceeded func(limit string)

	sender atomic.Pointer[client.Client]
}

// NewClient returns a Client that sends requests with c. It calls countExceeded for a list that has exceeded a limit.
func NewClient(c client.Client, l *Limits, countExceeded func(limit string)) *Client {
	limited := &Client{Client: c, limits: l, countExceeded: countExceeded}
	limited.SetSender(c)
	return limited
}

// SetSender replaces the client that sends the requests. A client remembers the resource and the scope of each kind, so
// it must be replaced when one of them has changed.
func (c *Client) SetSender(sender client.Client) { c.sender.Store(&sender) }

func (c *Client) getSender() client.Client { return *c.sender.Load() }

// runReserved runs a function that makes one call of a client. The memory of the responses counts against the budgets
// until the function has returned.
func runReserved(ctx context.Context, send func(context.Context) error) error {
	ctx, reservation := WithReservation(ctx)
	defer reservation.Release()
	return send(ctx)
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.getSender().Get(ctx, key, obj, opts...) })
}

// Create creates an object.
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.getSender().Create(ctx, obj, opts...) })
}

// Update updates an object.
func (c *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.getSender().Update(ctx, obj, opts...) })
}

// Patch patches an object.
func (c *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.getSender().Patch(ctx, obj, patch, opts...) })
}

// Apply applies an object.
func (c *Client) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.getSender().Apply(ctx, obj, opts...) })
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.getSender().Delete(ctx, obj, opts...) })
}

// DeleteAllOf deletes all objects of a kind.
func (c *Client) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.getSender().DeleteAllOf(ctx, obj, opts...) })
}

// Status returns a client for the subresource status.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource returns a client for a subresource.
func (c *Client) SubResource(name string) client.SubResourceClient {
	return &subResourceClient{c.getSender().SubResource(name)}
}

// List reads all pages of a list, unless the caller requests a single page with Limit or Continue.
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Limit > 0 || o.Continue != "" || o.Raw != nil {
		return runReserved(ctx, func(ctx context.Context) error { return c.getSender().List(ctx, list, opts...) })
	}
	return c.listPages(ctx, list, opts)
}

// listPages reads all pages of a list into the given list.
func (c *Client) listPages(ctx context.Context, list client.ObjectList, opts []client.ListOption) error {
	var items []runtime.Object
	total, pageSize, next := int64(0), c.limits.PageSize, ""
	for {
		size, err := c.listPage(ctx, list, append(slices.Clip(opts), client.Limit(pageSize), client.Continue(next)))
		if over, ok := errors.AsType[*Error](err); ok && over.Option == "Page" && pageSize > 1 {
			pageSize /= 2
			continue
		}
		if err != nil {
			return err
		}
		if total += size; total > c.limits.List {
			c.countExceeded("list")
			return newSizeError("list", "List", "all pages of a list", c.limits.List)
		}
		if next = list.GetContinue(); next == "" && items == nil {
			return nil
		}
		if items, err = appendItems(list, items); err != nil {
			return err
		}
		if next == "" {
			return meta.SetList(list, items)
		}
	}
}

// appendItems moves the items of a list to the end of `items`, and returns the result.
func appendItems(list client.ObjectList, items []runtime.Object) ([]runtime.Object, error) {
	found, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	return append(items, found...), meta.SetList(list, nil)
}

// listPage reads one page of a list, and returns the size of the response in bytes.
func (c *Client) listPage(ctx context.Context, list client.ObjectList, opts []client.ListOption) (int64, error) {
	ctx, reservation := WithReservation(ctx)
	defer reservation.Release()
	list.SetContinue("") // decoding does not reset fields that are absent from the page
	list.SetRemainingItemCount(nil)
	err := c.getSender().List(ctx, list, opts...)
	return reservation.getSize(), err
}

// subResourceClient is like Client, but for a subresource.
type subResourceClient struct{ client.SubResourceClient }

func (c *subResourceClient) Get(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.SubResourceClient.Get(ctx, obj, sub, opts...) })
}

func (c *subResourceClient) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.SubResourceClient.Create(ctx, obj, sub, opts...) })
}

func (c *subResourceClient) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.SubResourceClient.Update(ctx, obj, opts...) })
}

func (c *subResourceClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}

func (c *subResourceClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return runReserved(ctx, func(ctx context.Context) error { return c.SubResourceClient.Apply(ctx, obj, opts...) })
}
