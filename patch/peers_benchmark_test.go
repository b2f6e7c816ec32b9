// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deployerkit/deployerkit/patch"
)

// echo is a client that responds to every patch with the same object, which it decodes each time like a real response.
// It counts the bytes that are sent.
type echo struct {
	client.Client

	response []byte
	sent     int
}

func (e *echo) Patch(_ context.Context, obj client.Object, p client.Patch, _ ...client.PatchOption) error {
	data, err := p.Data(obj)
	if err != nil {
		return err
	}
	e.sent += len(data)
	switch into := obj.(type) { // a real client empties the object before it decodes the response
	case *corev1.ConfigMap:
		*into = corev1.ConfigMap{}
	case *unstructured.Unstructured:
		into.Object = nil
	}
	return json.Unmarshal(e.response, obj)
}

func (e *echo) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return json.Unmarshal(e.response, obj)
}

// largeChange describes one change of a large object, both as a patch and as a function on the Go type.
type largeChange[T client.Object] struct {
	note   func(*patch.Patch)
	inGo   func(T)
	stored T
	locked bool // set if MergeFrom uses optimistic locking, as a patch with functions does
}

// BenchmarkPeers compares Apply with controller-runtime's MergeFrom for objects of 100 KiB. It measures the CPU time of
// a complete change, from the object that was read to the decoded response, and the number of bytes that are sent.
// MergeFrom needs a copy of the object from before the change, and replaces lists as a whole.
func BenchmarkPeers(b *testing.B) {
	config := &corev1.ConfigMap{}
	config.APIVersion, config.Kind = "v1", "ConfigMap"
	config.Namespace, config.Name, config.UID, config.ResourceVersion = "ns", "large", "uid-1", "1"
	config.Data = map[string]string{}
	for i := range 100 {
		config.Data[fmt.Sprintf("key-%d", i)] = strings.Repeat("x", 1<<10)
	}
	compare(b, "one label/dictionary", largeChange[*corev1.ConfigMap]{
		stored: config,
		note:   func(p *patch.Patch) { p.Labels().Set("team", "blue") },
		inGo:   func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"team": "blue"} },
	})
	compare(b, "one key/typed function", largeChange[*corev1.ConfigMap]{
		stored: config, locked: true,
		note: func(p *patch.Patch) {
			p.Append(patch.Typed(func(cm *corev1.ConfigMap) error { cm.Data["key-1"] = "y"; return nil }))
		},
		inGo: func(cm *corev1.ConfigMap) { cm.Data["key-1"] = "y" },
	})
	list := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "List"}}
	list.SetNamespace("ns")
	list.SetName("large")
	list.SetUID("uid-1")
	list.SetResourceVersion("1")
	items := []any{}
	for i := range 1000 {
		items = append(items, map[string]any{"name": fmt.Sprint("item-", i), "text": strings.Repeat("x", 80)})
	}
	list.Object["spec"] = map[string]any{"items": items}
	one := map[string]any{"name": "new"}
	compare(b, "one item of a list/function", largeChange[*unstructured.Unstructured]{
		stored: list, locked: true,
		note: func(p *patch.Patch) {
			p.Append(func(body map[string]any) error { return appendItem(body, one) })
		},
		inGo: func(u *unstructured.Unstructured) { _ = appendItem(u.Object, one) },
	})
}

func appendItem(body map[string]any, item any) error {
	items, _, err := unstructured.NestedSlice(body, "spec", "items")
	if err != nil {
		return err
	}
	return unstructured.SetNestedSlice(body, append(items, item), "spec", "items")
}

// compare runs one change with both libraries.
func compare[T client.Object](b *testing.B, name string, ch largeChange[T]) {
	b.Helper()
	response, err := json.Marshal(ch.stored)
	if err != nil {
		b.Fatal(err)
	}
	copied := func() T { return ch.stored.DeepCopyObject().(T) }
	run := func(name string, send func(context.Context, *echo, T) error) {
		b.Run(name, func(b *testing.B) {
			c := &echo{Client: fake.NewClientBuilder().Build(), response: response}
			obj := copied()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				if err := send(b.Context(), c, obj); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.sent)/float64(n), "sent-B/op")
		})
	}
	run(name+"/patch", func(ctx context.Context, c *echo, obj T) error {
		p := &patch.Patch{}
		ch.note(p)
		_, err := p.Apply(ctx, c, obj, patch.WithStatusSubresource(false))
		return err
	})
	run(name+"/MergeFrom", func(ctx context.Context, c *echo, obj T) error {
		before := obj.DeepCopyObject().(T)
		ch.inGo(obj)
		if ch.locked {
			return c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		return c.Patch(ctx, obj, client.MergeFrom(before))
	})
}
