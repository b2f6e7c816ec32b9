// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"net/http"
	"path"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
)

// newReferenceGraph returns a graph of two components: a reference to a Secret that another client creates, and a
// ConfigMap that is derived from this Secret.
func newReferenceGraph(spec stategraph.ReferenceSpec) *stategraph.Graph {
	GinkgoHelper()
	spec.Kind = corev1.SchemeGroupVersion.WithKind("Secret")
	source := stategraph.Require[*corev1.Secret]("login")
	page := func(ctx context.Context) (*corev1.ConfigMap, error) {
		item, err := stategraph.Item(ctx)
		if err != nil {
			return nil, err
		}
		secret, err := source.Get(ctx)
		if err != nil {
			return nil, err
		}
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name + "-page"},
			Data:       map[string]string{"value": string(secret.Data["user"])},
		}, nil
	}
	return build(stategraph.NewBuilder().Add("login", stategraph.Reference(spec)).Add("page", stategraph.Object(page, stategraph.Uses(source))))
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// applySecret creates or updates a Secret.
func (w *env) applySecret(ctx context.Context, name, user string) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{"login": "of-" + w.Namespace}}}
	secret.StringData = map[string]string{"user": user}
	err := w.Client.Create(ctx, secret.DeepCopy(), client.FieldOwner("someone"))
	if apierrors.IsAlreadyExists(err) {
		body := map[string]any{"stringData": secret.StringData}
		err = w.Client.Patch(ctx, secret, mergePatch(body), client.FieldOwner("someone"))
	}
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("References", func() {
	byName := func(ctx context.Context) (types.NamespacedName, error) {
		item, err := stategraph.Item(ctx)
		if err != nil {
			return types.NamespacedName{}, err
		}
		return types.NamespacedName{Namespace: item.Namespace, Name: "login"}, nil
	}
	bySelector := func(ctx context.Context) (stategraph.Selection, error) {
		item, err := stategraph.Item(ctx)
		if err != nil {
			return stategraph.Selection{}, err
		}
		return stategraph.Selection{Labels: map[string]string{"login": "of-" + item.Namespace}}, nil
	}
	DescribeTable("waits for a referenced object, reads it, follows its changes, and never writes it [F36]", func(ctx SpecContext, spec stategraph.ReferenceSpec) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.Resync = -1
		w.start(newReferenceGraph(spec))
		w.begin(ctx, "item", map[string]any{})
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(Equal(map[string]string{"login": "Progressing", "page": "Blocked"}))
		w.applySecret(ctx, "login", "root")
		w.waitUntilSucceeded(ctx, "item")
		Expect(w.getValue(ctx, "item-page")(NewGomega(Fail))).To(Equal("root"))

		By("changing the object after the end of the job")
		w.applySecret(ctx, "login", "admin")
		Eventually(w.getValue(ctx, "item-page")).WithTimeout(patience).Should(Equal("admin"))
		w.WaitUntilQuiet(ctx)

		By("running a job without changes")
		before := w.Counter.Snapshot()
		w.rerunSuccessfully(ctx, "item")
		reads, writes := w.GetRequestCounts(before)
		Expect([]int{reads, writes}).To(Equal([]int{0, 0}), "requests: %s", w.Counter.Snapshot().Since(before))

		By("deleting the item")
		w.Delete(ctx, "item")
		secret := &corev1.Secret{}
		Expect(w.Client.Get(ctx, w.Key("login"), secret)).To(Succeed())
		Expect(secret.Labels).To(Equal(map[string]string{"login": "of-" + w.Namespace}), "it is never written")
	},
		Entry("the object is in the target, and found by name", SpecTimeout(5*time.Minute), stategraph.ReferenceSpec{Name: byName}),
		Entry("the object is in the target, and found by labels", SpecTimeout(5*time.Minute), stategraph.ReferenceSpec{Selector: bySelector}),
		Entry("the object is in the Landscaper cluster, and found by name", SpecTimeout(5*time.Minute), stategraph.ReferenceSpec{Name: byName, Landscaper: true}),
		Entry("the object is in the Landscaper cluster, and found by labels", SpecTimeout(5*time.Minute), stategraph.ReferenceSpec{Selector: bySelector, Landscaper: true}),
	)

	It("opens one watch for the kind of a reference, regardless of the number of items and changes [F36]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		var watches atomic.Int32
		w.options.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if request.URL.Query().Has("watch") && path.Base(request.URL.Path) == "secrets" {
					watches.Add(1)
				}
				return next.RoundTrip(request)
			})
		}
		w.start(newReferenceGraph(stategraph.ReferenceSpec{Name: byName}))
		items := []string{"one", "two", "three"}
		for _, item := range items {
			w.begin(ctx, item, map[string]any{})
		}
		for _, user := range []string{"root", "admin"} {
			w.applySecret(ctx, "login", user)
			for _, item := range items {
				Eventually(w.getValue(ctx, item+"-page")).WithTimeout(patience).Should(Equal(user))
			}
		}
		Expect(watches.Load()).To(Equal(int32(1)))
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Slow components", func() {
	It("a slow component delays only the components that require it, also when an object becomes ready meanwhile [F40]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		release := make(chan struct{})
		slow := stategraph.External(stategraph.ExternalSpec{Reconcile: func(ctx context.Context) error {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return ctx.Err()
		}})
		w.start(build(stategraph.NewBuilder().Add("slow", slow).Add("a", newSignedConfigMap("a")).Add("b", newSignedConfigMap("b"), "a").Add("c", newConfigMap("c"), "b").Add("last", newConfigMap("last"), "slow")))
		w.begin(ctx, "item", settings{Value: "a"})
		for _, step := range []struct{ sign, then string }{{"item-a", "item-b"}, {"item-b", "item-c"}} {
			Eventually(w.getValue(ctx, step.sign)).WithTimeout(patience).Should(Equal("a"))
			w.sign(ctx, step.sign, true)
			Eventually(w.getValue(ctx, step.then)).WithTimeout(patience).Should(Equal("a"))
		}
		Expect(w.getValue(ctx, "item-last")(NewGomega(Fail))).To(BeEmpty())
		close(release)
		w.waitUntilSucceeded(ctx, "item")
	}, SpecTimeout(5*time.Minute))
})
