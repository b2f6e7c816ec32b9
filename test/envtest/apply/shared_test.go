// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// newSharingItems returns two items that may share ConfigMaps and use the same strategy.
func newSharingItems(ctx context.Context, strategy apply.Strategy) (first, second *env) {
	first = newEnv(ctx)
	first.options.SharedKinds = []schema.GroupKind{{Kind: "ConfigMap"}}
	first.options.Strategy = strategy
	return first, first.newOtherItem()
}

// interceptingTransport is a transport that calls f once, before it sends the first request with the given HTTP method.
type interceptingTransport struct {
	next   http.RoundTripper
	method string
	once   sync.Once
	f      func()
}

func (b *interceptingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == b.method {
		b.once.Do(b.f)
	}
	return b.next.RoundTrip(req)
}

// runBeforeRequest changes the client of the item. Before the client sends its next request with the given HTTP method,
// it calls f once.
func (w *env) runBeforeRequest(method string, f func()) {
	w.newClient(func(next http.RoundTripper) http.RoundTripper {
		return &interceptingTransport{next: next, method: method, f: f}
	})
}

var _ = Describe("Objects of a kind that items share", func() {
	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMerge, apply.StrategyMergeOverwrite, apply.StrategyRecreate} {
		Describe("with the strategy "+string(strategy), func() {
			It("applies the fields of all owners to one object, and no owner reverts the fields of another one [F62]", func(ctx SpecContext) {
				first, second := newSharingItems(ctx, strategy)
				a, b := first.configMap("a", "key", "value", "first", "1"), first.configMap("a", "key", "value", "second", "2")
				first.apply(ctx, a)
				second.apply(ctx, b)
				Expect(first.get(ctx, "a").Data).To(Equal(map[string]string{"key": "value", "first": "1", "second": "2"}))
				first.apply(ctx, a)
				second.apply(ctx, b)
				version := first.get(ctx, "a").ResourceVersion
				for range 3 {
					first.apply(ctx, a)
					second.apply(ctx, b)
				}
				Expect(first.get(ctx, "a").ResourceVersion).To(Equal(version), "no item reverts a write of the other item")
				Expect(second.listReasons()).To(ConsistOf(apply.ReasonShared))
			})

			It("deletes a shared object with the last of its owners, in any order [F62]", func(ctx SpecContext) {
				first, second := newSharingItems(ctx, strategy)
				for name, order := range map[string][]*env{"a": {first, second}, "b": {second, first}} {
					first.apply(ctx, first.configMap(name, "key", "value", "first", "1"))
					second.apply(ctx, first.configMap(name, "key", "value", "second", "2"))
					order[0].delete(ctx)
					left := first.get(ctx, name)
					Expect(left).NotTo(BeNil())
					mine := map[*env]map[string]string{first: {"key": "value", "first": "1"}, second: {"key": "value", "second": "2"}}
					Expect(left.Data).To(Equal(mine[order[1]]))
					Expect(left.Labels).To(Equal(map[string]string{ownership.LabelItem: string(order[1].owner.UID)}))
					Expect(order[0].listNames()).To(BeEmpty())
					Expect(order[0].listReasons()).To(ContainElement(apply.ReasonReleased))

					order[1].apply(ctx, first.configMap(name, "key", "value", map[bool]string{true: "first", false: "second"}[order[1] == first], "3"))
					order[1].delete(ctx)
					Expect(first.get(ctx, name)).To(BeNil())
					Expect(order[1].listNames()).To(BeEmpty())
				}
			})

			It("only releases a pruned object that another item still contains [F62]", func(ctx SpecContext) {
				first, second := newSharingItems(ctx, strategy)
				first.apply(ctx, first.configMap("a", "key", "value", "first", "1"))
				second.apply(ctx, first.configMap("a", "key", "value"))
				first.apply(ctx)
				Expect(first.get(ctx, "a").Data).To(Equal(map[string]string{"key": "value"}))
				second.apply(ctx)
				Expect(first.get(ctx, "a")).To(BeNil())
			})
		})
	}

	It("sends no additional request for the first owner, and only this owner watches the object [F62]", func(ctx SpecContext) {
		first, second := newSharingItems(ctx, apply.StrategyApply)
		first.apply(ctx, first.configMap("a", "key", "value"))
		second.apply(ctx, first.configMap("a", "key", "value"))
		Expect(first.recordRequests(func() { first.apply(ctx, first.configMap("a", "key", "value")) }).Sum()).To(BeZero())
		Expect(second.recordRequests(func() { second.apply(ctx, first.configMap("a", "key", "value")) })).To(matchWrites(1))
		first.delete(ctx)
		report := second.apply(ctx, first.configMap("a", "key", "value"))
		Expect(report.Owned).To(HaveLen(1))
		Expect(second.recordRequests(func() { second.apply(ctx, first.configMap("a", "key", "value")) }).Sum()).To(BeZero())
	})

	It("keeps an adopted object marked when one of its owners leaves, and the last owner releases it [F29, F37, F62]", func(ctx SpecContext) {
		for i := range 4 {
			leaves, lost := i%2, i/2 == 1
			first, second := newSharingItems(ctx, apply.StrategyApply)
			owners := []*env{first, second}
			first.createForeign(ctx, "a", "key", "theirs", "more", "theirs")
			for _, owner := range owners {
				owner.apply(ctx, first.configMap("a", "key", "value"))
			}
			owners[leaves].delete(ctx)
			last := owners[1-leaves]
			Expect(first.get(ctx, "a").Annotations).To(HaveKeyWithValue(ownership.AnnotationAdopted, "true"))
			if lost {
				last.restoreInventory(ctx, "a")
			}
			last.delete(ctx)
			live := first.get(ctx, "a")
			Expect(live).NotTo(BeNil())
			Expect(live.Labels).NotTo(HaveKey(ownership.LabelItem))
			Expect(live.Annotations).NotTo(HaveKey(HavePrefix(ownership.Prefix)))
		}
	})

	It("keeps the object if another owner joins between the read and the deletion [F62]", func(ctx SpecContext) {
		first, second := newSharingItems(ctx, apply.StrategyApply)
		first.apply(ctx, first.configMap("a", "key", "value"))
		first.runBeforeRequest(http.MethodDelete, func() { second.apply(ctx, first.configMap("a", "key", "value")) })
		first.delete(ctx)
		Expect(first.get(ctx, "a").Labels).To(HaveKeyWithValue(ownership.LabelItem, string(second.owner.UID)))
	})

	It("deletes the object if its owners leave at the same time [F62]", func(ctx SpecContext) {
		first, second := newSharingItems(ctx, apply.StrategyApply)
		first.apply(ctx, first.configMap("a", "key", "value"))
		second.apply(ctx, first.configMap("a", "key", "value"))
		first.runBeforeRequest(http.MethodPatch, func() { second.delete(ctx) })
		first.delete(ctx)
		Expect(first.get(ctx, "a")).To(BeNil())
		for range 10 {
			first.apply(ctx, first.configMap("a", "key", "value"))
			second.apply(ctx, first.configMap("a", "key", "value"))
			both := sync.WaitGroup{}
			for _, w := range []*env{first, second} {
				both.Go(func() {
					defer GinkgoRecover()
					w.delete(ctx)
				})
			}
			both.Wait()
			Expect(first.get(ctx, "a")).To(BeNil())
		}
	})

	It("refuses a second value for a field, and the error names the owner of the first value [F62]", func(ctx SpecContext) {
		first, second := newSharingItems(ctx, apply.StrategyApply)
		first.apply(ctx, first.configMap("a", "key", "value"))
		second.apply(ctx, first.configMap("a", "mine", "value"))
		for w, key := range map[*env]string{first: "mine", second: "key"} {
			_, err := w.try(ctx, first.configMap("a", key, "other"))
			Expect(err).To(MatchError(SatisfyAll(ContainSubstring(".data."+key), ContainSubstring("items/"))))
			Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))
		}
		Expect(first.get(ctx, "a").Data).To(Equal(map[string]string{"key": "value", "mine": "value"}))
	})

	It("counts an item that is created again as the same owner [F62]", func(ctx SpecContext) {
		for _, reborn := range []int{0, 1} {
			first, second := newSharingItems(ctx, apply.StrategyApply)
			both := []*env{first, second}
			first.apply(ctx, first.configMap("a", "key", "value"))
			second.apply(ctx, first.configMap("a", "key", "value"))
			again := first.newOtherItem()
			again.owner = both[reborn].owner
			again.owner.UID = types.UID("another-life")
			again.apply(ctx, first.configMap("a", "key", "value"))
			both[1-reborn].delete(ctx)
			Expect(first.get(ctx, "a")).NotTo(BeNil())
			again.delete(ctx)
			Expect(first.get(ctx, "a")).To(BeNil())
		}
	})

	It("deletes a shared object by a group that deletes all objects of its kind [F62]", func(ctx SpecContext) {
		first, second := newSharingItems(ctx, apply.StrategyApply)
		second.apply(ctx, first.configMap("a", "key", "value"))
		second.apply(ctx, first.configMap("a", "key", "value"))
		first.delete(ctx, apply.DeletionGroup{DeleteAll: true, Resources: []apply.ResourceType{{APIVersion: "v1", Kind: "ConfigMap", Namespaces: []string{first.namespace}}}})
		Expect(first.get(ctx, "a")).To(BeNil())
	})

	It("plans a change of the item's own fields, and no deletion [F62]", func(ctx SpecContext) {
		first, second := newSharingItems(ctx, apply.StrategyApply)
		first.apply(ctx, first.configMap("a", "key", "value"))
		second.apply(ctx, first.configMap("a", "key", "value"))
		for _, w := range []*env{first, second} {
			plan, err := w.newEngine().Plan(ctx, w.owner, []apply.Desired{first.configMap("a", "key", "value")}, w.stored)
			Expect(err).NotTo(HaveOccurred())
			Expect(plan.Changes).To(BeEmpty())
			plan, err = w.newEngine().Plan(ctx, w.owner, nil, w.stored)
			Expect(err).NotTo(HaveOccurred())
			Expect(plan.Changes).To(BeEmpty())
		}
	})

	It("shares Namespaces unless the options contain other kinds [F62]", func(ctx SpecContext) {
		first := newEnv(ctx)
		second := first.newOtherItem()
		namespace := func(label string) apply.Desired {
			return apply.Desired{Object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": first.namespace + "-shared", "labels": map[string]any{label: "yes"}},
			}}}
		}
		first.apply(ctx, namespace("first"))
		second.apply(ctx, namespace("second"))
		first.delete(ctx)
		live := &corev1.Namespace{}
		Expect(direct.Get(ctx, client.ObjectKey{Name: first.namespace + "-shared"}, live)).To(Succeed())
		Expect(live.DeletionTimestamp).To(BeNil())
		Expect(live.Labels).To(SatisfyAll(HaveKeyWithValue("second", "yes"), Not(HaveKey("first"))))

		third := first.newOtherItem()
		third.options.SharedKinds = []schema.GroupKind{}
		third.owner.Name = "third"
		_, err := third.try(ctx, namespace("third"))
		Expect(err).To(MatchError(ContainSubstring("items/other")))
	})
})

var _ = Describe("Objects of another item", func() {
	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate} {
		It("reports a configuration problem while the other item exists; strategy "+string(strategy)+" [F62]", func(ctx SpecContext) {
			w := newEnv(ctx)
			thief := w.newOtherItem()
			thief.options.Strategy = strategy
			state := apply.OwnerExists
			thief.options.FindOwner = func(context.Context, ownership.Owner) apply.OwnerState { return state }
			w.apply(ctx, w.configMap("a", "key", "value"))
			_, err := thief.try(ctx, w.configMap("a", "key", "other"))
			Expect(err).To(MatchError(SatisfyAll(ContainSubstring("items/item"), ContainSubstring("set its policy to keep in that item"))))
			Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))

			for _, other := range []apply.OwnerState{apply.OwnerDeleting, apply.OwnerUnknown} {
				state = other
				_, err = thief.try(ctx, w.configMap("a", "key", "other"))
				Expect(err).To(MatchError(ContainSubstring("items/item")), "owner %q", other)
				Expect(apply.GetClass(err)).To(Equal(apply.ClassRetry))
			}

			state = apply.OwnerGone
			thief.owner.Landscape = "another"
			_, err = thief.try(ctx, w.configMap("a", "key", "other"))
			Expect(err).To(MatchError(ContainSubstring("items/item")))
			Expect(apply.GetClass(err)).To(Equal(apply.ClassRetry), "items of other clusters cannot be looked up")
		})
	}
})
