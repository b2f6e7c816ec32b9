// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/targets"
)

// withContext returns the names of the methods of an interface that have a context parameter. These are the methods
// that send requests.
func withContext[T any]() []string {
	var out []string
	for method := range reflect.TypeFor[T]().Methods() {
		if method.Type.NumIn() > 0 && method.Type.In(0) == reflect.TypeFor[context.Context]() {
			out = append(out, method.Name)
		}
	}
	return out
}

// TestCallReleasesMemoryWhenItReturns checks that each call releases the memory of its response when it returns.
func TestCallReleasesMemoryWhenItReturns(t *testing.T) {
	type call func(context.Context, *targets.Client) error
	apply := func() *corev1ac.ConfigMapApplyConfiguration { return corev1ac.ConfigMap("a", "default") }
	patch := client.RawPatch("application/merge-patch+json", []byte("{}"))
	calls := map[string]call{
		"Get": func(ctx context.Context, c *targets.Client) error {
			return c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, newNamedConfigMap("a"))
		},
		"List":   func(ctx context.Context, c *targets.Client) error { return c.List(ctx, &corev1.ConfigMapList{}) },
		"Create": func(ctx context.Context, c *targets.Client) error { return c.Create(ctx, newNamedConfigMap("a")) },
		"Update": func(ctx context.Context, c *targets.Client) error { return c.Update(ctx, newNamedConfigMap("a")) },
		"Patch":  func(ctx context.Context, c *targets.Client) error { return c.Patch(ctx, newNamedConfigMap("a"), patch) },
		"Apply": func(ctx context.Context, c *targets.Client) error {
			return c.Apply(ctx, apply(), client.FieldOwner("test"))
		},
		"Delete": func(ctx context.Context, c *targets.Client) error { return c.Delete(ctx, newNamedConfigMap("a")) },
		"DeleteAllOf": func(ctx context.Context, c *targets.Client) error {
			return c.DeleteAllOf(ctx, newNamedConfigMap("a"), client.InNamespace("default"))
		},
	}
	ofSubresource := func(name string, of func(*targets.Client) client.SubResourceClient) map[string]call {
		return map[string]call{
			name + ".Get": func(ctx context.Context, c *targets.Client) error {
				return of(c).Get(ctx, newNamedConfigMap("a"), newNamedConfigMap("a"))
			},
			name + ".Create": func(ctx context.Context, c *targets.Client) error {
				return of(c).Create(ctx, newNamedConfigMap("a"), newNamedConfigMap("a"))
			},
			name + ".Update": func(ctx context.Context, c *targets.Client) error { return of(c).Update(ctx, newNamedConfigMap("a")) },
			name + ".Patch": func(ctx context.Context, c *targets.Client) error {
				return of(c).Patch(ctx, newNamedConfigMap("a"), patch)
			},
			name + ".Apply": func(ctx context.Context, c *targets.Client) error {
				return of(c).Apply(ctx, apply(), client.FieldOwner("test"))
			},
		}
	}
	want := withContext[client.Client]()
	maps.Copy(calls, ofSubresource("SubResource", func(c *targets.Client) client.SubResourceClient { return c.SubResource("status") }))
	for _, name := range withContext[client.SubResourceClient]() {
		want = append(want, "SubResource."+name)
	}
	maps.Copy(calls, ofSubresource("Status", func(c *targets.Client) client.SubResourceClient {
		status, _ := c.Status().(client.SubResourceClient)
		return status
	}))
	for _, name := range withContext[client.SubResourceWriter]() {
		want = append(want, "Status."+name)
	}
	for _, name := range want {
		if calls[name] == nil {
			t.Errorf("no call of %s is tested", name)
		}
	}
	for name, one := range calls {
		if !slices.Contains(want, name) {
			continue
		}
		t.Run(name+" releases the memory of its response [F2]", func(t *testing.T) {
			s := newHostileServer(t, hostile.When(hostile.Not(hostile.IsDiscovery), hostile.ManyValues(50_000)))
			p := newPool(t, targets.PoolOptions{})
			c := getClient(t, p, newResolvedTarget("a", string(s.Kubeconfig("t"))))
			before := s.CountRequests(nil)
			if err := one(t.Context(), c); err != nil {
				t.Logf("the answer does not fit: %v", err)
			}
			if s.CountRequests(nil) == before {
				t.Fatal("no request was made")
			}
			if held := getMetrics(t, p)[`deployerkit_target_budget_bytes{decoding}`]; held != 0 {
				t.Errorf("the call returned, and %.0f bytes of the budget are held", held)
			}
		})
	}
}
