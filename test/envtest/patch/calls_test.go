// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
)

const (
	merge = "application/merge-patch+json"
	steps = "application/json-patch+json"
)

// set returns a function that sets a field of the body.
func set(value any, path ...string) patch.Func {
	return func(body map[string]any) error { return unstructured.SetNestedField(body, value, path...) }
}

// combination describes one of 16 patches. The patch contains values for the body if bodyDict is true, and values for
// the status if statusDict is true. It contains a function that changes the body if bodyFunc is true, and a function
// that changes the status if statusFunc is true.
type combination struct{ bodyDict, bodyFunc, statusDict, statusFunc bool }

// String describes the patch for the title of a test.
func (k combination) String() string {
	describe := func(dict, function bool, part string) string {
		switch {
		case dict && function:
			return "merge changes and functions change the " + part
		case dict:
			return "merge changes change the " + part
		case function:
			return "functions change the " + part
		default:
			return "nothing changes the " + part
		}
	}
	return describe(k.bodyDict, k.bodyFunc, "body") + " and " + describe(k.statusDict, k.statusFunc, "status")
}

func (k combination) patch() *patch.Patch {
	p := &patch.Patch{}
	if k.bodyDict {
		p.Spec().Set("text", "dict")
	}
	if k.statusDict {
		p.Status().Set("text", "dict")
	}
	if k.bodyFunc {
		p.Append(set(int64(2), "spec", "n"))
	}
	if k.statusFunc {
		p.Append(set(int64(2), "status", "n"))
	}
	return p
}

// listRequests returns the requests that the patch needs for an object of the given kind, in order.
func (k combination) listRequests(kind string) []request {
	how := merge
	if k.bodyFunc || k.statusFunc {
		how = steps
	}
	out := []request{}
	body, status := k.bodyDict || k.bodyFunc, k.statusDict || k.statusFunc
	if body || kind == whole && status {
		out = append(out, request{"", how})
	}
	if status && kind == apart {
		out = append(out, request{"status", how})
	}
	return out
}

// article says, for the title of a test, whether a kind has a status subresource.
var article = map[string]string{apart: "a", whole: "no"}

var _ = Describe("Requests of a patch", func() {
	for _, kind := range []string{apart, whole} {
		for bits := range 16 {
			k := combination{bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0}
			title := fmt.Sprintf("sends the fewest requests for a kind that has %s status subresource if %s [K2, K6, K7, K8, K9, K13, K26, Kx1, Kx15]", article[kind], k)
			It(title, func(ctx SpecContext) {
				obj := create(ctx, kind)
				want, err := k.patch().ApplyTo(obj.Object)
				Expect(err).NotTo(HaveOccurred())
				result := apply(ctx, k.patch(), obj, patch.WithStatusSubresource(kind == apart))
				Expect(wire.getRequests()).To(Equal(k.listRequests(kind)))
				Expect(result.Calls).To(HaveLen(len(wire.getRequests())))
				Expect(obj.Object["spec"]).To(Equal(want["spec"]))
				Expect(obj.Object["status"]).To(Equal(want["status"]))
				apply(ctx, k.patch(), obj, patch.WithStatusSubresource(kind == apart))
				Expect(wire.getRequests()).To(HaveLen(len(k.listRequests(kind))), "the second time nothing is to be done")
			})
		}
		It("detects that a kind has "+article[kind]+" status subresource [K9]", func(ctx SpecContext) {
			obj := create(ctx, kind)
			apply(ctx, combination{statusDict: true}.patch(), obj)
			Expect(obj.Object["status"]).To(HaveKeyWithValue("text", "dict"))
			for bits := range 16 {
				k := combination{bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0}
				obj = create(ctx, kind)
				apply(ctx, k.patch(), obj)
				Expect(wire.getRequests()).To(Equal(k.listRequests(kind)))
			}
		})
	}

	It("a patch without effect sends no request [K8, K19]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		p := &patch.Patch{}
		p.Append(set(int64(1), "spec", "n"), func(body map[string]any) error { delete(body, "nope"); return nil })
		p.Spec().In("free", "deep").Set("nope", nil)
		p.Labels().Set("old", "1")
		apply(ctx, p, obj)
		Expect(wire.getRequests()).To(BeEmpty())
	})

	It("a patch removes a key, or empties its parent [K16, Kx10]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		p := &patch.Patch{}
		p.Spec().Set("free", map[string]any{"a": map[string]any{"x": 1}, "b": map[string]any{"x": 1}})
		apply(ctx, p, obj)
		for _, change := range []func(*patch.Patch){
			func(p *patch.Patch) { p.Spec().In("free", "a").Set("x", nil); p.Spec().In("free").Set("b", nil) },
			func(p *patch.Patch) { p.Append(set(map[string]any{"a": map[string]any{}}, "spec", "free")) },
		} {
			p = &patch.Patch{}
			change(p)
			apply(ctx, p, obj)
			Expect(obj.Object["spec"]).To(HaveKeyWithValue("free", map[string]any{"a": map[string]any{}}))
		}
	})

	It("escapes keys in merge changes and in functions [Kx9]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		keys := []string{"a/b", "a~b", "~1", "~0/", "a.b", "", "ü€", `"\`, "0", "-"}
		p := &patch.Patch{}
		for _, key := range keys {
			p.Spec().In("free", "dict").Set(key, "1")
		}
		apply(ctx, p, obj)
		p = &patch.Patch{}
		for _, key := range keys {
			p.Append(set("1", "spec", "free", "func", key), set("2", "spec", "free", "dict", key))
		}
		apply(ctx, p, obj)
		free := obj.Object["spec"].(map[string]any)["free"].(map[string]any)
		Expect(free["func"]).To(HaveLen(len(keys)))
		Expect(free["dict"]).To(And(HaveLen(len(keys)), HaveEach("2")))
		p = &patch.Patch{}
		p.Append(func(body map[string]any) error {
			for _, key := range keys {
				unstructured.RemoveNestedField(body, "spec", "free", "dict", key)
			}
			return nil
		})
		apply(ctx, p, obj)
		Expect(obj.Object["spec"].(map[string]any)["free"].(map[string]any)["dict"]).To(BeEmpty())
	})

	It("a patch stores an explicit null that a function sets [Kx14]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		p := &patch.Patch{}
		p.Append(set(nil, "spec", "text"))
		apply(ctx, p, obj)
		Expect(obj.Object["spec"]).To(HaveKeyWithValue("text", BeNil()))
		wire.reset()
		apply(ctx, p, obj)
		Expect(wire.getRequests()).To(BeEmpty())
	})

	It("a patch warns about a field that the API server dropped, with its path [Kx11]", func(ctx SpecContext) {
		for _, kind := range []string{apart, whole} {
			obj := create(ctx, kind)
			p := &patch.Patch{}
			p.Spec().Set("colour", "red")
			p.Append(set("red", "status", "in/ner", "colour"), set(int64(3), "status", "n"))
			result := apply(ctx, p, obj)
			Expect(result.Warnings).To(ConsistOf(HavePrefix("spec.colour was not stored"), HavePrefix(`status["in/ner"] was not stored`)))
		}
	})

	It("a patch changes a typed DeployItem that was never processed [K1, K15]", func(ctx SpecContext) {
		di := newItem()
		direct := newClient(cfg)
		Expect(direct.Create(ctx, di)).To(Succeed())
		wire.reset()
		p := &patch.Patch{}
		p.Labels().Set("a", "1")
		p.Status().Set("observedGeneration", 1)
		p.Status().Set("deployer", map[string]any{"name": "n", "identity": "i", "version": "v"})
		result, err := p.Apply(ctx, c, di)
		Expect(err).NotTo(HaveOccurred())
		Expect(wire.getRequests()).To(Equal([]request{{"", merge}, {"status", merge}}))
		Expect(di.Status.Deployer.Name).To(Equal("n"))
		Expect(result.Warnings).To(BeEmpty())

		di = newItem()
		Expect(direct.Create(ctx, di)).To(Succeed())
		wire.reset()
		p = &patch.Patch{}
		p.Append(patch.Typed(func(di *item) error { di.Status.Phase = "Init"; return nil }))
		_, err = p.Apply(ctx, c, di)
		Expect(err).NotTo(HaveOccurred())
		Expect(wire.getRequests()).To(Equal([]request{{"status", steps}}))
		Expect(di.Status.Phase).To(BeEquivalentTo("Init"))
	})

	It("a patch changes objects of built-in kinds with functions of Go types [K20, K32]", func(ctx SpecContext) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "t-"}, Data: map[string]string{"a": "1"}}
		Expect(newClient(cfg).Create(ctx, cm)).To(Succeed())
		wire.reset()
		p := &patch.Patch{}
		p.Body().In("data").Set("a", nil)
		setData := func(key, value string) patch.Func {
			return patch.Typed(func(cm *corev1.ConfigMap) error {
				if cm.Data == nil {
					cm.Data = map[string]string{}
				}
				cm.Data[key] = value
				return nil
			})
		}
		p.Append(setData("b", "2"), setData("c", "3"))
		_, err := p.Apply(ctx, c, cm)
		Expect(err).NotTo(HaveOccurred())
		Expect(cm.Data).To(Equal(map[string]string{"b": "2", "c": "3"}))
		Expect(wire.getRequests()).To(Equal([]request{{"", steps}}))
	})

	It("a patch keeps changes that another client makes meanwhile [K10, K28]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		own := obj.DeepCopy()
		Expect(unstructured.SetNestedField(own.Object, "own", "spec", "text")).To(Succeed())
		Expect(newClient(cfg).Update(ctx, own)).To(Succeed())
		p := &patch.Patch{}
		p.Labels().Set("mine", "1")
		apply(ctx, p, obj)
		p = &patch.Patch{}
		p.Append(func(body map[string]any) error {
			text, _, err := unstructured.NestedString(body, "spec", "text")
			return firstError(err, unstructured.SetNestedField(body, text+"!", "spec", "text"))
		})
		apply(ctx, p, obj)
		Expect(obj.Object["spec"]).To(HaveKeyWithValue("text", "own!"))
	})
})

var _ = Describe("Errors of a patch", func() {
	It("a stale version causes a conflict, and nothing is applied [K27]", func(ctx SpecContext) {
		for _, k := range []combination{{bodyDict: true}, {bodyFunc: true}, {statusDict: true}, {statusFunc: true}} {
			obj := create(ctx, apart)
			stale := obj.DeepCopy()
			foreign := &patch.Patch{}
			foreign.Labels().Set("foreign", "1")
			apply(ctx, foreign, obj)
			_, err := k.patch().Apply(ctx, c, stale, patch.WithOptimisticLock())
			Expect(err).To(MatchError(apierrors.IsConflict, "IsConflict"))
			Expect(read(ctx, stale)).To(Equal(obj.Object))
		}
	})

	It("a step that does not fit the newer body causes a conflict [K27, Kx15]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		stale := obj.DeepCopy()
		foreign := &patch.Patch{}
		foreign.Spec().Set("list", []string{})
		apply(ctx, foreign, obj)
		p := &patch.Patch{}
		p.Append(func(body map[string]any) error {
			list, _, err := unstructured.NestedStringSlice(body, "spec", "list")
			list = slices.DeleteFunc(list, func(s string) bool { return s == "b" })
			return firstError(err, unstructured.SetNestedStringSlice(body, append([]string{"new"}, list...), "spec", "list"))
		})
		_, err := p.Apply(ctx, c, stale.DeepCopy(), patch.WithOptimisticLock())
		Expect(err).To(MatchError(apierrors.IsConflict, "IsConflict"))
		result := apply(ctx, p, stale)
		Expect(result.Attempts).To(Equal(2))
		Expect(stale.Object["spec"]).To(HaveKeyWithValue("list", []any{"new"}))
	})

	It("an invalid value causes a validation error that names the field, also in a function [Kx5, Kx15]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		for _, value := range []func(*patch.Patch){
			func(p *patch.Patch) { p.Spec().Set("n", "no number") },
			func(p *patch.Patch) { p.Append(set("no number", "spec", "n")) },
		} {
			p := &patch.Patch{}
			value(p)
			result, err := p.Apply(ctx, c, obj)
			Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
			Expect(err).To(MatchError(ContainSubstring("spec.n")))
			Expect(result.Attempts).To(Equal(1))
		}
	})

	It("an object that does not exist any more causes no error [Kx4]", func(ctx SpecContext) {
		for _, k := range []combination{{bodyDict: true}, {bodyFunc: true}, {statusDict: true}, {statusFunc: true}} {
			obj := create(ctx, apart)
			Expect(newClient(cfg).Delete(ctx, obj.DeepCopy())).To(Succeed())
			Expect(apply(ctx, k.patch(), obj).Gone).To(BeTrue())
		}
	})

	It("an object without a resource version is rejected [Kx8]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		obj.SetResourceVersion("")
		_, err := combination{bodyFunc: true}.patch().Apply(ctx, c, obj)
		Expect(err).To(MatchError(ContainSubstring("must be read before it is patched")))
		Expect(wire.getRequests()).To(BeEmpty())
	})

	It("an object that disappears with its last finalizer causes no error [Kx13]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		p := &patch.Patch{}
		p.Append(addFinalizer("example.org/a"))
		apply(ctx, p, obj)
		Expect(newClient(cfg).Delete(ctx, obj.DeepCopy())).To(Succeed())
		wire.reset()
		p = &patch.Patch{}
		p.Append(removeFinalizer("example.org/a"))
		p.Status().Set("text", "bye")
		Expect(apply(ctx, p, obj).Gone).To(BeTrue()) // the patch conflicts with the deletion
		err := newClient(cfg).Get(ctx, client.ObjectKeyFromObject(obj), obj)
		Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	})

	It("only the status is sent again after a conflict if the main resource was written [Kx2, Kx3]", func(ctx SpecContext) {
		obj := create(ctx, apart)
		p, runs := &patch.Patch{}, 0
		p.Append(func(body map[string]any) error {
			runs++
			return firstError(increment("spec")(body), increment("status")(body))
		})
		foreign := obj.DeepCopy()
		between := &concurrentWriter{Client: c, before: func() {
			other := &patch.Patch{}
			other.Labels().Set("foreign", "1")
			_, err := other.Apply(ctx, newClient(cfg), foreign)
			Expect(err).NotTo(HaveOccurred())
		}}
		result, err := p.Apply(ctx, between, obj, patch.WithStatusSubresource(true))
		Expect(err).NotTo(HaveOccurred())
		Expect(wire.getRequests()).To(Equal([]request{{"", steps}, {"status", steps}, {"status", steps}}))
		Expect(result.Attempts).To(Equal(2))
		Expect(runs).To(Equal(2))
		Expect(obj.Object["spec"]).To(HaveKeyWithValue("n", int64(2)))
		Expect(obj.Object["status"]).To(HaveKeyWithValue("n", int64(2)))
		Expect(obj.GetLabels()).To(HaveKeyWithValue("foreign", "1"))
	})
})
