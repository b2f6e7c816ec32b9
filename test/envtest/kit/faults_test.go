// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// network is a client together with the faulty network through which it connects to the API server.
type network struct {
	*faultnet.Network
	access  *rest.Config
	faulty  typedcorev1.ConfigMapInterface
	healthy typedcorev1.ConfigMapInterface
	ns      string
}

// set stores a value in the object "a" without using the network.
func (n *network) set(ctx context.Context, value string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"key": value}}
	_, err := n.healthy.Update(ctx, cm, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = n.healthy.Create(ctx, cm, metav1.CreateOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
}

// get reads the value of "a" through the network.
func (n *network) get(ctx context.Context) string {
	GinkgoHelper()
	cm, err := n.faulty.Get(ctx, "a", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return cm.Data["key"]
}

// patch sets the value of "a" through the network.
func (n *network) patch(ctx context.Context, value string) error {
	body := fmt.Appendf(nil, `{"data":{"key":%q}}`, value)
	_, err := n.faulty.Patch(ctx, "a", types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// readValue returns the value of "a" at the API server.
func (n *network) readValue(ctx context.Context) string {
	GinkgoHelper()
	cm, err := n.healthy.Get(ctx, "a", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return cm.Data["key"]
}

// newProxyConfig returns a config for a client that connects through the proxy of the network. Like a program, this
// client reads the config from a kubeconfig.
func newProxyConfig(n *faultnet.Network, cfg *rest.Config) *rest.Config {
	GinkgoHelper()
	raw, err := faultnet.EncodeKubeconfig(n.Proxy(cfg)) // as for the flag --kubeconfig
	Expect(err).NotTo(HaveOccurred())
	access, err := clientcmd.RESTConfigFromKubeConfig(raw)
	Expect(err).NotTo(HaveOccurred())
	return access
}

var _ = Describe("Faults of the simulated network, as client-go receives them", Ordered, func() {
	var cp *controlplane.ControlPlane
	BeforeAll(func(ctx SpecContext) { cp, _ = start(ctx, controlplane.CRDs()) })

	for way, through := range map[string]func(*faultnet.Network, *rest.Config) *rest.Config{
		"in the process": (*faultnet.Network).Wrap, "as a proxy": newProxyConfig,
	} {
		for _, form := range []string{"application/json", protobuf} {
			Describe(way+", "+form, func() {
				describeFaults(func(ctx context.Context, rules ...faultnet.Rule) *network {
					GinkgoHelper()
					n := &network{Network: faultnet.Start(GinkgoTB(), faultnet.Scenario{Rules: rules})}
					direct, err := kubernetes.NewForConfig(cp.Config)
					Expect(err).NotTo(HaveOccurred())
					ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "network-"}}
					ns, err = direct.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
					Expect(err).NotTo(HaveOccurred())
					n.ns, n.access = ns.Name, through(n.Network, cp.Config)
					n.access.ContentType = form
					faulty, err := kubernetes.NewForConfig(n.access)
					Expect(err).NotTo(HaveOccurred())
					n.healthy, n.faulty = direct.CoreV1().ConfigMaps(n.ns), faulty.CoreV1().ConfigMaps(n.ns)
					return n
				})
			})
		}
	}

	It("a deployer of the library ends its job", func(ctx SpecContext) {
		t, cfg := GinkgoTB(), cp.Config
		fake := landscapertest.NewFake()
		args := deployerlib.DeployerArgs{Type: "example.com/faults", Deployer: fake}
		key := keyOf("faults")

		network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{
			// The first three status writes meet a conflict.
			{Match: faultnet.Match{Verb: "patch", Resource: "deployitems", Subresource: "status"}, Times: 3, Fault: faultnet.Conflict()},
			// The fourth status write is stored, but the deployer does not receive the response.
			{Match: faultnet.Match{Verb: "patch", Resource: "deployitems", Subresource: "status"}, Nth: 4, Fault: faultnet.DropResponse()},
			// The first watch of deploy items breaks. The second watch delivers two events twice.
			{Match: faultnet.Match{Resource: "deployitems"}, Fault: faultnet.DropWatch(1)},
			{Match: faultnet.Match{Resource: "deployitems"}, Nth: 2, Fault: faultnet.ReplayWatch(2)},
		}})
		landscapertest.StartManager(t, network.Wrap(cfg), args)

		// The test's own client connects directly to the API server.
		scheme, err := landscapertest.Scheme()
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(cfg, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{})
		Expect(ls.Deploy(ctx, ls.Item(key.Namespace, key.Name, args.Type, config))).To(Succeed())
		di, err := ls.WaitUntilFinished(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(fake.CountCalls(key, contract.ActionReconcile)).To(Equal(1))
	}, SpecTimeout(5*time.Minute))

	It("a deployer of the library ends its jobs under random faults from a seed", func(ctx SpecContext) {
		t, cfg := GinkgoTB(), cp.Config
		args := deployerlib.DeployerArgs{Type: "example.com/chaos", Deployer: landscapertest.NewFake()}

		network := faultnet.Start(t, faultnet.Chaos(42, faultnet.Match{Resource: "deployitems"}, 0.1))
		landscapertest.StartManager(t, network.Wrap(cfg), args)

		scheme, err := landscapertest.Scheme()
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(cfg, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{})
		for i := range 10 {
			Expect(ls.Deploy(ctx, ls.Item("default", fmt.Sprintf("chaos-%d", i), args.Type, config))).To(Succeed())
		}
		for i := range 10 {
			di, err := ls.WaitUntilFinished(ctx, keyOf(fmt.Sprintf("chaos-%d", i)))
			Expect(err).NotTo(HaveOccurred())
			Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		}
	}, SpecTimeout(5*time.Minute))
})

// describeFaults defines specs for a client. The function `begin` returns the network through which this client
// connects.
func describeFaults(begin func(context.Context, ...faultnet.Rule) *network) {
	It("a stale read returns an earlier state", func(ctx SpecContext) {
		n := begin(ctx, faultnet.Rule{Match: faultnet.Match{Verb: "get", Name: "a"}, Fault: faultnet.Stale(1)},
			faultnet.Rule{Match: faultnet.Match{Verb: "list", Resource: "configmaps"}, Nth: 2, Fault: faultnet.Stale(1)})
		n.set(ctx, "old")
		Expect(n.get(ctx)).To(Equal("old"))
		before, err := n.faulty.List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		n.set(ctx, "new")
		Expect(n.get(ctx)).To(Equal("old"))
		Expect(n.get(ctx)).To(Equal("new"))
		after, err := n.faulty.List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(Equal(before))
	}, SpecTimeout(5*time.Minute))

	It("a lost response belongs to a write that took effect", func(ctx SpecContext) {
		n := begin(ctx, faultnet.Rule{Match: faultnet.Match{Verb: faultnet.WriteVerb}, Fault: faultnet.DropResponse()})
		n.set(ctx, "old")
		Expect(n.patch(ctx, "new")).NotTo(Succeed())
		Expect(n.readValue(ctx)).To(Equal("new"))
	}, SpecTimeout(5*time.Minute))

	It("a lost request has no effect, and a killed client sends no more requests", func(ctx SpecContext) {
		n := begin(ctx, faultnet.Rule{Match: faultnet.Match{Verb: faultnet.WriteVerb}, Fault: faultnet.Reset()},
			faultnet.Rule{Match: faultnet.Match{Verb: faultnet.WriteVerb}, Nth: 2, Fault: faultnet.KillAfter()})
		n.set(ctx, "old")
		Expect(n.patch(ctx, "new")).NotTo(Succeed())
		Expect(n.readValue(ctx)).To(Equal("old"))
		Expect(n.patch(ctx, "last")).NotTo(Succeed())
		Eventually(ctx, n.Killed()).Should(BeClosed())
		Expect(n.patch(ctx, "never")).NotTo(Succeed())
		Expect(n.readValue(ctx)).To(Equal("last"))
	}, SpecTimeout(5*time.Minute))

	It("a conflict is returned a given number of times", func(ctx SpecContext) {
		n := begin(ctx, faultnet.Rule{Match: faultnet.Match{Verb: "patch"}, Times: 3, Fault: faultnet.Conflict()})
		n.set(ctx, "old")
		Expect(apierrors.IsConflict(n.patch(ctx, "new"))).To(BeTrue())
		Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error { return n.patch(ctx, "new") })).To(Succeed())
		Expect(n.Report().SumHits()).To(Equal(3))
	}, SpecTimeout(5*time.Minute))

	It("an expired token and a denying webhook cause the errors of an API server", func(ctx SpecContext) {
		n := begin(ctx, faultnet.Rule{Match: faultnet.Match{All: true}, Times: 2, Fault: faultnet.TokenExpired()},
			faultnet.Rule{Match: faultnet.Match{Verb: "patch"}, Nth: 2, Fault: faultnet.WebhookDenied("w.example.com")},
			faultnet.Rule{Match: faultnet.Match{Verb: "patch"}, Nth: 3, Fault: faultnet.WebhookFailed("w.example.com")})
		n.set(ctx, "old")
		_, err := n.faulty.Get(ctx, "a", metav1.GetOptions{})
		Expect(err).To(MatchError(apierrors.IsUnauthorized, "IsUnauthorized"))
		Expect(apierrors.IsUnauthorized(n.patch(ctx, "new"))).To(BeTrue())
		Expect(n.get(ctx)).To(Equal("old"))
		err = n.patch(ctx, "new")
		Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
		Expect(err).To(MatchError(ContainSubstring(`admission webhook "w.example.com" denied the request`)))
		Expect(apierrors.IsInternalError(n.patch(ctx, "new"))).To(BeTrue())
		Expect(n.readValue(ctx)).To(Equal("old"))
	}, SpecTimeout(5*time.Minute))

	It("a watch repeats events, and is cut", func(ctx SpecContext) {
		n := begin(ctx, faultnet.Rule{Match: faultnet.Match{Resource: "configmaps"}, Fault: faultnet.ReplayWatch(2)},
			faultnet.Rule{Match: faultnet.Match{Resource: "configmaps"}, Nth: 2, Fault: faultnet.DropWatch(1)})
		n.set(ctx, "first")
		for _, wanted := range [][]string{{"first", "second", "first", "second"}, {"second", "closed"}} {
			n.watch(ctx, wanted)
		}
	}, SpecTimeout(5*time.Minute))

	It("an informer receives the last state in spite of broken watches", func(ctx SpecContext) {
		n := begin(ctx, faultnet.Rule{Match: faultnet.Match{Resource: "configmaps"}, Fault: faultnet.DropWatch(3)},
			faultnet.Rule{Match: faultnet.Match{Resource: "configmaps"}, Nth: 2, Fault: faultnet.ReplayWatch(1)},
			faultnet.Rule{Match: faultnet.Match{Resource: "configmaps"}, Nth: 3, Fault: faultnet.DelayWatchEvents(1, time.Second), Optional: true})
		n.set(ctx, "0")
		set, err := kubernetes.NewForConfig(n.access)
		Expect(err).NotTo(HaveOccurred())
		factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithNamespace(n.ns))
		lister := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(n.ns)
		inner, stop := context.WithCancel(ctx)
		DeferCleanup(factory.Shutdown)
		DeferCleanup(stop)
		factory.StartWithContext(inner)
		factory.WaitForCacheSyncWithContext(inner)
		i := 0
		Eventually(func(g Gomega) {
			i++
			n.set(ctx, fmt.Sprint(i))
			g.Expect(n.Report().ListUnusedRules()).To(BeEmpty())
		}).WithContext(ctx).WithTimeout(30 * time.Second).Should(Succeed())
		Eventually(func(g Gomega) {
			cm, err := lister.Get("a")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cm.Data["key"]).To(Equal(fmt.Sprint(i)))
		}).WithContext(ctx).WithTimeout(30 * time.Second).Should(Succeed())
	}, SpecTimeout(5*time.Minute))
}

// watch watches "a" from its current version and requires that the events contain the given values. After the first
// event, it stores the value "second".
func (n *network) watch(ctx context.Context, wanted []string) {
	GinkgoHelper()
	w, err := n.faulty.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=a"})
	Expect(err).NotTo(HaveOccurred())
	defer w.Stop()
	var got []string
	for !slices.Equal(got, wanted) {
		select {
		case event, open := <-w.ResultChan():
			cm, ok := event.Object.(*corev1.ConfigMap)
			switch {
			case ok:
				got = append(got, cm.Data["key"])
			case !open, event.Type == watch.Error: // the stream or the connection broke
				got = append(got, "closed")
			default:
				Fail(fmt.Sprintf("got %+v", event))
			}
		case <-ctx.Done():
			Fail(fmt.Sprintf("got %v, want %v", got, wanted))
		}
		Expect(len(got)).To(BeNumerically("<=", len(wanted)), "got %v, want %v", got, wanted)
		if len(got) == 1 && got[0] == "first" {
			n.set(ctx, "second")
		}
	}
}
