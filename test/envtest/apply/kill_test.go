// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/faultnet"
)

var errKilled = errors.New("killed")

// killer is a transport that sends a limited number of writes. It then rejects all requests, as if the process had been
// killed. If the field `lost` is true, the last write takes effect, but the client does not receive the response.
type killer struct {
	next http.RoundTripper
	lost bool

	mu   sync.Mutex
	left int
	dead bool
}

func (k *killer) RoundTrip(req *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		return nil, errKilled
	}
	if _, counted := faultnet.RequestOf(req); !counted || req.Method == http.MethodGet {
		return k.next.RoundTrip(req)
	}
	if k.left == 0 {
		k.dead = true
		return nil, errKilled
	}
	k.left--
	res, err := k.next.RoundTrip(req)
	if k.left == 0 && k.lost && err == nil {
		k.dead = true
		return nil, errors.Join(errKilled, res.Body.Close())
	}
	return res, err
}

// untilKilled calls f with an engine whose requests fail after n writes, as if the process had been killed. If `lost`
// is true, write n takes effect, but its response is lost. After the kill, the stored inventory is the one from the
// last checkpoint. untilKilled returns false if the engine made fewer than n writes.
func (w *env) untilKilled(n int, lost bool, f func(*apply.Engine) (apply.Inventory, apply.Report, error)) bool {
	GinkgoHelper()
	k := &killer{left: n, lost: lost}
	w.newClient(func(next http.RoundTripper) http.RoundTripper { k.next = next; return k })
	inv, report, err := f(w.newEngine())
	w.newClient(nil)
	if k.dead {
		Expect(err).To(HaveOccurred())
		return true
	}
	Expect(err).NotTo(HaveOccurred())
	Expect(report.Waiting).To(BeEmpty())
	w.store(inv)
	return false
}

// killScenario describes a call of the engine. It lists the ConfigMaps that exist before the call and the ConfigMaps
// that must exist after the call, no matter when the engine is killed.
type killScenario struct {
	before, after []string
	run           func(ctx context.Context, w *env, e *apply.Engine) (apply.Inventory, apply.Report, error)
	rest          func(ctx context.Context, w *env)
}

func (w *env) newConfigMaps(names ...string) []apply.Desired {
	out := []apply.Desired{}
	for _, name := range names {
		out = append(out, w.configMap(name, "key", "value"))
	}
	return out
}

// effect says, for the title of a test, whether the process was killed before or after a write took effect. The key is
// true if the response of the write is lost.
var effect = map[bool]string{false: "before", true: "after"}

var _ = Describe("Killed processes", func() {
	scenes := map[string]killScenario{
		"an install":             {after: []string{"a", "b", "c"}},
		"an update with a prune": {before: []string{"a", "b", "c", "d"}, after: []string{"c", "d", "e"}},
		"a deletion": {
			before: []string{"a", "b", "c"},
			run: func(ctx context.Context, w *env, e *apply.Engine) (apply.Inventory, apply.Report, error) {
				return e.Delete(ctx, w.owner, w.stored, nil)
			},
			rest: func(ctx context.Context, w *env) { w.delete(ctx) },
		},
	}
	for title, s := range scenes {
		for _, lost := range []bool{false, true} {
			for n := range 8 {
				It(fmt.Sprintf("completes %s after the process was killed at write %d, %s the write took effect [D10, D11] [C-17, H-14]", title, n, effect[lost]), func(ctx SpecContext) {
					w := newEnv(ctx)
					w.options.Concurrency = 1
					w.createForeign(ctx, "foreign", "key", "theirs")
					stranger := w.newOtherItem()
					stranger.apply(ctx, w.newConfigMaps("stranger")...)
					untouched := []*corev1.ConfigMap{w.get(ctx, "foreign"), w.get(ctx, "stranger")}
					if len(s.before) > 0 {
						w.apply(ctx, w.newConfigMaps(s.before...)...)
					}
					desired := w.newConfigMaps(s.after...)
					killed := w.untilKilled(n, lost, func(e *apply.Engine) (apply.Inventory, apply.Report, error) {
						if s.run != nil {
							return s.run(ctx, w, e)
						}
						return e.Apply(ctx, w.owner, desired, w.stored)
					})
					if n == 0 {
						Expect(killed).To(BeTrue(), "the scene must write")
					}
					// Every object that exists and belongs to the item is in the inventory.
					Expect(w.listNames()).To(ContainElements(w.listOwned(ctx)))
					if s.rest != nil {
						s.rest(ctx, w)
					} else {
						w.apply(ctx, desired...)
					}
					Expect(w.listOwned(ctx)).To(ConsistOf(s.after))
					Expect(w.listNames()).To(ConsistOf(s.after))
					Expect([]*corev1.ConfigMap{w.get(ctx, "foreign"), w.get(ctx, "stranger")}).To(Equal(untouched))
					Expect(w.listReasons()).To(BeEmpty())
				})
			}
		}
	}

	It("does not delete an object that another client created in place of an object of the item", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a", "b")...)
		for _, name := range []string{"a", "b"} {
			Expect(direct.Delete(ctx, w.get(ctx, name))).To(Succeed())
			w.createForeign(ctx, name)
		}
		theirs := []*corev1.ConfigMap{w.get(ctx, "a"), w.get(ctx, "b")}
		w.apply(ctx)
		Expect(w.stored.Entries).To(BeEmpty())
		Expect([]*corev1.ConfigMap{w.get(ctx, "a"), w.get(ctx, "b")}).To(Equal(theirs))
	})

	It("deletes an object that was created again just before a kill [H-14]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a")...)
		Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
		// The first write fails because the object does not exist; the second write creates it.
		w.untilKilled(2, true, func(e *apply.Engine) (apply.Inventory, apply.Report, error) {
			return e.Apply(ctx, w.owner, w.newConfigMaps("a"), w.stored)
		})
		Expect(w.stored.Entries[0].UID).NotTo(Equal(w.get(ctx, "a").UID))
		w.delete(ctx)
		Expect(w.listOwned(ctx)).To(BeEmpty())
	})
})

// listOwned returns the names of the ConfigMaps whose owner label contains the UID of the item.
func (w *env) listOwned(ctx context.Context) []string {
	GinkgoHelper()
	all := &corev1.ConfigMapList{}
	Expect(direct.List(ctx, all, client.InNamespace(w.namespace), client.MatchingLabels{"deployerkit.dev/item": string(w.owner.UID)})).To(Succeed())
	out := []string{}
	for _, one := range all.Items {
		out = append(out, one.Name)
	}
	return out
}

var _ = Describe("Refused deletions", func() {
	// refuse makes deletions fail, as a webhook that denies deletions would.
	refuse := func(w *env) {
		w.wire.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "delete" },
			faultnet.ReturnStatus(http.StatusForbidden, metav1.StatusReasonForbidden)))
	}

	It("reports a refused deletion, and keeps the object in the inventory [D10] [H-14, H-21]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a", "b", "c")...)
		refuse(w)
		for range 3 {
			_, err := w.try(ctx, w.newConfigMaps("c")...)
			Expect(err).To(MatchError(ContainSubstring("ConfigMap " + w.namespace + "/a: injected by the test")))
			Expect(apply.GetClass(err)).To(Equal(apply.ClassRetry))
			Expect(w.listNames()).To(ConsistOf("a", "b", "c"))

			inv, _, err := w.newEngine().Delete(ctx, w.owner, w.stored, nil)
			Expect(err).To(HaveOccurred())
			Expect(inv.Entries).To(HaveLen(3))
		}
		w.wire.SetInjector(nil)
		w.apply(ctx, w.newConfigMaps("c")...)
		Expect(w.listOwned(ctx)).To(ConsistOf("c"))
		w.delete(ctx)
		Expect(w.listOwned(ctx)).To(BeEmpty())
	})
})

var _ = Describe("Incomplete applies", func() {
	It("prunes nothing after an error, and keeps all objects in the inventory [D11] [C-17, H-14, H-15]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("a", "b")...)
		w.wire.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Name == "d" },
			faultnet.ReturnStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError)))
		_, err := w.try(ctx, w.newConfigMaps("c", "d")...)
		Expect(err).To(MatchError(ContainSubstring("/d: injected by the test")))
		Expect(w.listNames()).To(ConsistOf("a", "b", "c", "d"))
		Expect(w.listOwned(ctx)).To(ConsistOf("a", "b", "c"))
		w.wire.SetInjector(nil)
		Expect(w.recordRequests(func() { w.apply(ctx, w.newConfigMaps("c", "d")...) }).OnlyWrites().Sum()).To(Equal(3), "expected writes: d is created, and a and b are deleted")
		Expect(w.listOwned(ctx)).To(ConsistOf("c", "d"))
	})

	It("returns the reason of the API server with each error [H-15]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.wire.SetInjector(faultnet.ReturnStatus(http.StatusUnauthorized, metav1.StatusReasonUnauthorized))
		_, err := w.try(ctx, w.newConfigMaps("a", "b")...)
		one, found := errors.AsType[*apply.Error](err)
		Expect(found).To(BeTrue())
		Expect(one.StatusReason).To(Equal(metav1.StatusReasonUnauthorized))
		Expect(one.Class).To(Equal(apply.ClassPermanent))
	})
})
