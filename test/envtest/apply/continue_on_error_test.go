// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/faultnet"
)

// recordWrites returns the names of the objects that are written while f runs, in the order of the writes.
func (w *env) recordWrites(f func()) []string {
	out := []string{}
	w.wire.SetInjector(func(req *http.Request) (*http.Response, error) {
		if r, ok := faultnet.RequestOf(req); ok && r.Verb != "get" {
			out = append(out, r.Name)
		}
		return nil, nil
	})
	f()
	w.wire.SetInjector(nil)
	return out
}

// failWrites makes all writes of the objects with the given names fail.
func (w *env) failWrites(names ...string) {
	w.wire.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "patch" && slices.Contains(names, r.Name) },
		faultnet.ReturnStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError)))
}

var _ = Describe("Order and errors of an apply", func() {
	It("writes objects in the order of the call, if it writes one at a time [Rx2]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Concurrency = 1
		secret := w.manifest("v1", "Secret", "m", nil)
		desired := []apply.Desired{w.configMap("z"), w.configMap("b"), secret, w.configMap("y"), w.configMap("a")}
		Expect(w.recordWrites(func() { w.apply(ctx, desired...) })).To(Equal([]string{"z", "b", "m", "y", "a"}))
		slices.Reverse(desired)
		w.options.Force = true
		Expect(w.recordWrites(func() { w.apply(ctx, desired...) })).To(Equal([]string{"a", "y", "m", "b", "z"}))
	})

	It("continues with the other objects after an error, and reports all errors [Rx2]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Concurrency = 1
		w.apply(ctx, w.newConfigMaps("old")...)
		w.failWrites("a", "c")
		_, err := w.try(ctx, w.newConfigMaps("a", "b", "c", "d")...)
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring("/a: "), ContainSubstring("/c: "))))
		Expect(w.listOwned(ctx)).To(ConsistOf("b", "d", "old"), "no object is pruned")
		w.wire.SetInjector(nil)
		w.apply(ctx, w.newConfigMaps("a", "b", "c", "d")...)
		Expect(w.listOwned(ctx)).To(ConsistOf("a", "b", "c", "d"))
	})

	It("applies the objects of all stages although one object fails, and prunes nothing until all are applied [Rx2] [F93]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.newConfigMaps("old")...)
		role := w.newObjectOfEachStage()[1]
		w.failWrites(role.Object.GetName(), "a")
		try := func() error { _, err := w.try(ctx, append(w.newConfigMaps("a", "b"), role)...); return err }
		Expect(try()).To(MatchError(SatisfyAll(ContainSubstring("ClusterRole"), ContainSubstring("/a: "))))
		Expect(w.listOwned(ctx)).To(ConsistOf("b", "old"))
		w.wire.SetInjector(nil)
		Expect(try()).To(Succeed())
		Expect(w.listOwned(ctx)).To(ConsistOf("a", "b"))
		w.delete(ctx)
	})

	It("waits for the definition and the namespace of an object that depends on them [F93]", func(ctx SpecContext) {
		w := newEnv(ctx)
		all := w.newObjectOfEachStage()
		namespace := all[2].Object.GetName()
		w.failWrites(namespace)
		report, err := w.try(ctx, append(all, w.configMap("beside"))...)
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring("Namespace "+namespace), Not(ContainSubstring("Thing")))))
		Expect(report.Waiting).To(ContainElement(HaveField("Ref.Kind", "Thing")))
		Expect(w.get(ctx, "beside")).NotTo(BeNil())
		w.wire.SetInjector(nil)
		w.apply(ctx, append(all, w.configMap("beside"))...)
		Expect(w.stored.Entries).To(HaveLen(5))
	})
})
