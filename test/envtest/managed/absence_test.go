// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"context"
	"net/http"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/faultnet"
)

// These specs run with each deployer that the library provides.
var _ = Describe("Absent objects", func() {
	for _, l := range layers {
		Context("of the deployer "+l.name, func() {
			It("deletes an item whose object is gone together with its definition [F70]", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l)
				_, remove := w.createSample(ctx)
				remove()
				w.Delete(ctx, "item")
			}, SpecTimeout(5*time.Minute))

			It("keeps an item while the credentials do not allow listing the definition of an object [F70]", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l)
				kind, _ := w.createSample(ctx)
				w.Serve(ctx, kind)
				definitions := func(r faultnet.Request) bool { return r.Verb == "list" && r.Resource == "customresourcedefinitions" }
				w.Counter.SetInjector(faultnet.When(definitions, faultnet.ReturnStatus(http.StatusForbidden, metav1.StatusReasonForbidden)))
				w.beginDeletion(ctx, "item")
				Eventually(w.listMessages(ctx, "item")).WithContext(ctx).WithTimeout(patience).Should(ContainElement(
					And(ContainSubstring("Sample"), ContainSubstring("it cannot be proved that the kind is gone"))))
				w.Counter.SetInjector(nil)
				w.Serve(ctx, kind, "v1")
				w.waitUntilDeleted(ctx, "item")
				_, err := w.GetSample(ctx, kind, "v1", "a")
				Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
			}, SpecTimeout(5*time.Minute))

			It("does not take the status 404 of a proxy as proof that an object is gone [F70]", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l).start()
				w.runSuccessfully(ctx, "item", nil, []any{w.configMap("a", "a")})
				object := func(r faultnet.Request) bool { return r.Resource == "configmaps" && r.Name == "a" }
				w.Counter.SetInjector(faultnet.When(object, faultnet.ReturnStatus(http.StatusNotFound, metav1.StatusReasonNotFound)))
				w.beginDeletion(ctx, "item")
				Eventually(w.listMessages(ctx, "item")).WithContext(ctx).WithTimeout(patience).Should(ContainElement(ContainSubstring("ConfigMap")))
				w.Counter.SetInjector(nil)
				w.waitUntilDeleted(ctx, "item")
				Expect(w.Read(ctx, "a")).To(BeNil())
			}, SpecTimeout(5*time.Minute))

			It("does not create an object again that was expected to disappear [F70, F91]", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l).start()
				w.runSuccessfully(ctx, "item", nil, []any{w.object("v1", "ConfigMap", "task", map[string]any{"metadata": map[string]any{
					"namespace": w.Namespace, "name": "task", "annotations": map[string]any{ownership.AnnotationDeletesItself: "true"},
				}})})
				Expect(w.Client.Delete(ctx, w.Read(ctx, "task"))).To(Succeed())
				before := w.Counter.Snapshot()
				Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded))
				Expect(w.Read(ctx, "task")).To(BeNil())
				Expect(w.Counter.Snapshot().Since(before).OnlyWrites().Sum()).To(BeZero())
				w.Delete(ctx, "item")
			}, SpecTimeout(5*time.Minute))
		})
	}
})

// createSample defines a kind, starts the deployer, and deploys an object of the kind with the item "item". The
// function `remove` removes the definition.
func (w *layerEnv) createSample(ctx context.Context) (kind schema.GroupVersionKind, remove func()) {
	GinkgoHelper()
	kind, remove = w.CreateDefinition(ctx)
	w.children = []declarative.ChildKind{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}}
	w.start()
	w.runSuccessfully(ctx, "item", nil, []any{w.object(kind.GroupVersion().String(), kind.Kind, "a", map[string]any{"spec": map[string]any{"size": 1}})})
	return kind, remove
}

// beginDeletion requests the deletion of an item.
func (w *layerEnv) beginDeletion(ctx context.Context, item string) {
	GinkgoHelper()
	Expect(w.Landscaper.MarkForDeletion(ctx, w.Key(item))).To(Succeed())
	_, err := w.Landscaper.Trigger(ctx, w.Key(item))
	Expect(err).NotTo(HaveOccurred())
}

// waitUntilDeleted waits until an item no longer exists. The deletion of the item may have failed before.
func (w *layerEnv) waitUntilDeleted(ctx context.Context, item string) {
	GinkgoHelper()
	Eventually(func() error { return w.Landscaper.WaitForDeletion(ctx, w.Key(item)) }).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

// listMessages returns a function for Eventually that reads the messages of the conditions and of the last error of an
// item.
func (w *layerEnv) listMessages(ctx context.Context, item string) func(Gomega) []string {
	return func(g Gomega) (out []string) {
		status := w.ReadItem(ctx, item)(g).Status
		for _, condition := range status.Conditions {
			out = append(out, condition.Message)
		}
		if status.LastError != nil {
			out = append(out, status.LastError.Message)
		}
		return out
	}
}
