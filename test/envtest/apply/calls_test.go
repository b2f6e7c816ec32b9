// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/deployerkit/deployerkit/apply"
)

const (
	waitTimeout = time.Minute
	waitPolling = 50 * time.Millisecond
)

// matchWrites returns a matcher for request counts. It matches if exactly n requests were sent, and all of them were
// writes.
func matchWrites(n int) types.GomegaMatcher {
	return WithTransform(func(f interface{ Sum() int }) int { return f.Sum() }, Equal(n))
}

var _ = Describe("Requests of an apply", func() {
	const n = 20

	It("sends one write per object at first, none when nothing changed, and one for each change [D8]", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.configMaps(n)
		w.apply(ctx) // a client's first call performs a discovery, so an empty apply precedes the counted calls
		install := w.recordRequests(func() { w.apply(ctx, desired...) })
		Expect(install).To(matchWrites(n), install.String())
		Expect(w.checkpoints).To(Equal(1))
		Expect(w.events).To(BeEmpty())

		again := w.recordRequests(func() {
			report := w.apply(ctx, desired...)
			Expect(report.Unchanged).To(Equal(n))
			Expect(report.Applied).To(BeZero())
		})
		Expect(again).To(matchWrites(0), again.String())

		desired[7] = w.configMap("c7", "key", "changed")
		one := w.recordRequests(func() { w.apply(ctx, desired...) })
		Expect(one).To(matchWrites(1), one.String())
		Expect(w.get(ctx, "c7").Data).To(HaveKeyWithValue("key", "changed"))

		w.patchConfigMap(ctx, "c3", `{"data":{"key":"by hand"}}`)
		healed := w.recordRequests(func() { w.apply(ctx, desired...) })
		Expect(healed).To(matchWrites(1), healed.String())
		Expect(w.get(ctx, "c3").Data).To(HaveKeyWithValue("key", "value"))

		w.patchConfigMap(ctx, "c4", `{"data":{"other":"theirs"},"metadata":{"labels":{"theirs":"yes"}}}`)
		Expect(w.recordRequests(func() { w.apply(ctx, desired...) })).To(matchWrites(0))
		Expect(w.checkpoints).To(Equal(1), "the inventory is stored again only if it lists more objects")
	})

	It("writes all objects if Force is set", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.configMaps(3)...)
		w.options.Force = true
		Expect(w.recordRequests(func() { w.apply(ctx, w.configMaps(3)...) })).To(matchWrites(3))
	})

	It("writes all objects if the caller has no watch", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Watched = nil
		w.apply(ctx, w.configMaps(3)...)
		Expect(w.recordRequests(func() { w.apply(ctx, w.configMaps(3)...) })).To(matchWrites(3))
	})

	It("removes fields that left the manifest, and keeps fields of other managers", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.configMap("a", "one", "1", "two", "2"))
		w.patchConfigMap(ctx, "a", `{"data":{"three":"3"}}`)
		w.apply(ctx, w.configMap("a", "one", "1"))
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"one": "1", "three": "3"}))
	})

	It("restores an object that was deleted, and one that another client has created again", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.configMaps(2)...)
		Expect(direct.Delete(ctx, w.get(ctx, "c0"))).To(Succeed())
		Expect(direct.Delete(ctx, w.get(ctx, "c1"))).To(Succeed())
		w.createForeign(ctx, "c1", "key", "theirs", "more", "theirs")
		w.apply(ctx, w.configMaps(2)...)
		Expect(w.get(ctx, "c0").Data).To(Equal(map[string]string{"key": "value"}))
		Expect(w.get(ctx, "c1").Data).To(Equal(map[string]string{"key": "value", "more": "theirs"}))
		Expect(w.listReasons()).To(ConsistOf(apply.ReasonAdopted))
		Expect(w.recordRequests(func() { w.apply(ctx, w.configMaps(2)...) })).To(matchWrites(0))
	})

	It("corrects a Secret whose stringData another client has edited", func(ctx SpecContext) {
		w := newEnv(ctx)
		secret := w.manifest("v1", "Secret", "s", map[string]any{"stringData": map[string]any{"password": "CANARY-1"}})
		w.apply(ctx, secret)
		Expect(w.recordRequests(func() { w.apply(ctx, secret) })).To(matchWrites(0))
		empty := w.manifest("v1", "Secret", "s", map[string]any{"data": map[string]any{"password": "WA=="}}).Object
		Expect(direct.Update(ctx, empty)).To(Succeed())
		Expect(w.recordRequests(func() { w.apply(ctx, secret) })).To(matchWrites(1))
	})
})

var _ = Describe("Inventory", func() {
	It("an inventory takes about 150 bytes per object", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.configMaps(10)...)
		data, err := json.Marshal(w.stored)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(data)/10).To(BeNumerically("<=", 160), string(data))
	})

	It("refuses an inventory that would be too large before the first write [D11]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.MaxInventory = 300
		spent := w.recordRequests(func() {
			_, err := w.try(ctx, w.configMaps(10)...)
			Expect(err).To(MatchError(ContainSubstring("10 objects are too many")))
			Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))
		})
		Expect(spent).To(matchWrites(0))
		Expect(w.checkpoints).To(BeZero())
	})

	It("writes nothing if the inventory cannot be stored", func(ctx SpecContext) {
		w := newEnv(ctx)
		boom := fmt.Errorf("boom")
		w.options.Checkpoint = func(_ context.Context, _ apply.Inventory) error { return boom }
		Expect(w.recordRequests(func() {
			_, err := w.try(ctx, w.configMaps(2)...)
			Expect(err).To(MatchError(boom))
		})).To(matchWrites(0))
	})
})
