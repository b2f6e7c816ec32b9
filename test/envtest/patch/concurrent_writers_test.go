// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

type item = lsv1alpha1.DeployItem

func newItem() *item {
	return &item{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "t-"}, Spec: lsv1alpha1.DeployItemSpec{Type: "example.com/patch"}}
}

// firstError returns the first error if this error is not nil, and otherwise the second error.
func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func increment(part string) patch.Func {
	return func(body map[string]any) error {
		n, _, err := unstructured.NestedInt64(body, part, "n")
		return firstError(err, unstructured.SetNestedField(body, n+1, part, "n"))
	}
}

func addFinalizer(name string) patch.Func {
	return func(body map[string]any) error {
		list, _, err := unstructured.NestedStringSlice(body, "metadata", "finalizers")
		if err != nil || slices.Contains(list, name) {
			return err
		}
		return unstructured.SetNestedStringSlice(body, append(list, name), "metadata", "finalizers")
	}
}

func removeFinalizer(name string) patch.Func {
	return func(body map[string]any) error {
		list, _, err := unstructured.NestedStringSlice(body, "metadata", "finalizers")
		list = slices.DeleteFunc(list, func(s string) bool { return s == name })
		return firstError(err, unstructured.SetNestedStringSlice(body, list, "metadata", "finalizers"))
	}
}

// concurrentWriter is a transport that makes another write before the first write of the status.
type concurrentWriter struct {
	client.Client
	before func()
}

func (i *concurrentWriter) SubResource(name string) client.SubResourceClient {
	return &concurrentStatusWriter{i.Client.SubResource(name), i}
}

type concurrentStatusWriter struct {
	client.SubResourceClient
	parent *concurrentWriter
}

func (s *concurrentStatusWriter) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if before := s.parent.before; before != nil {
		s.parent.before = nil
		before()
	}
	return s.SubResourceClient.Patch(ctx, obj, p, opts...)
}

var _ = Describe("Concurrent writers", func() {
	It("no increment is lost, and a patch needs at most two attempts on average [K25, K29, K30, Kx15]", world.Slow, func(ctx SpecContext) {
		const writers, times = 2, 1000
		obj := create(ctx, apart)
		attempts, faults := make([]int, writers), make([]error, writers)
		group := sync.WaitGroup{}
		for w := range writers {
			mine, own := obj.DeepCopy(), newClient(cfg)
			group.Go(func() {
				p := &patch.Patch{}
				p.Append(increment("spec"))
				for range times {
					result, err := p.Apply(ctx, own, mine, patch.WithMaxAttempts(100))
					attempts[w] += result.Attempts
					faults[w] = errors.Join(faults[w], err)
				}
			})
		}
		group.Wait()
		Expect(errors.Join(faults...)).NotTo(HaveOccurred())
		Expect(read(ctx, obj)["spec"]).To(HaveKeyWithValue("n", int64(1+writers*times)))
		total := attempts[0] + attempts[1]
		GinkgoWriter.Printf("%d attempts for %d increments\n", total, writers*times)
		Expect(total).To(BeNumerically("<=", 2*writers*times))
	}, SpecTimeout(10*time.Minute))

	It("no foreign finalizer is lost [K20, K33]", world.Slow, func(ctx SpecContext) {
		const controllers = 20
		obj := create(ctx, apart)
		end := time.Now().Add(10 * time.Second)
		faults, rounds := make([]error, controllers), make([]int, controllers)
		group := sync.WaitGroup{}
		for i := range controllers {
			mine, own, name := obj.DeepCopy(), newClient(cfg), fmt.Sprintf("example.org/c%d", i)
			group.Go(func() {
				for time.Now().Before(end) && faults[i] == nil {
					faults[i] = toggleFinalizer(ctx, own, mine, name)
					rounds[i]++
				}
			})
		}
		group.Wait()
		Expect(errors.Join(faults...)).NotTo(HaveOccurred())
		GinkgoWriter.Printf("rounds: %v\n", rounds)
		Expect(rounds).To(HaveEach(BeNumerically(">", 0)))
		stored := &unstructured.Unstructured{Object: read(ctx, obj)}
		Expect(stored.GetFinalizers()).To(HaveLen(controllers))
		stored.SetFinalizers(nil)
		Expect(newClient(cfg).Update(ctx, stored)).To(Succeed())
	}, SpecTimeout(8*time.Minute))
})

// toggleFinalizer removes the finalizer with the given name and adds it again. It checks that no other writer has
// reverted these writes.
func toggleFinalizer(ctx context.Context, c client.Client, obj *unstructured.Unstructured, name string) error {
	for _, step := range []struct {
		change patch.Func
		has    bool
	}{{removeFinalizer(name), false}, {addFinalizer(name), true}} {
		if err := untilApplied(ctx, c, obj, step.change); err != nil {
			return err
		}
		now := obj.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil {
			return err
		}
		if slices.Contains(now.GetFinalizers(), name) != step.has {
			return fmt.Errorf("%s: finalizers are %v", name, now.GetFinalizers())
		}
		if slices.Compare(slices.Compact(slices.Sorted(slices.Values(now.GetFinalizers()))), slices.Sorted(slices.Values(now.GetFinalizers()))) != 0 {
			return fmt.Errorf("duplicates: %v", now.GetFinalizers())
		}
	}
	return nil
}

// untilApplied applies a change again after each conflict, like a controller that is called again after an error.
func untilApplied(ctx context.Context, c client.Client, obj *unstructured.Unstructured, change patch.Func) error {
	p := &patch.Patch{}
	p.Append(change)
	for {
		if _, err := p.Apply(ctx, c, obj); !apierrors.IsConflict(err) {
			return err
		}
	}
}
