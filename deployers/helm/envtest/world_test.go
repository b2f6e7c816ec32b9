// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

// patience is the time limit of each wait. It is long because the machine may be busy.
const patience = 2 * time.Minute

// jobTimeout is the timeout of items whose jobs are to end because of it. The machine must reach the point at which the
// job waits before.
const jobTimeout = 10 * time.Second

var cp *controlplane.ControlPlane

func TestHelm(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "Helm deployer")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	var err error
	cp, err = controlplane.Start(ctx, controlplane.Options{ControllerManager: true, Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
})

// world is the environment of a spec: a namespace with a Target for the control plane, a simulated Landscaper, and a
// Helm deployer. Each world has its own item type.
type world struct {
	client.WithWatch

	landscaper *landscapertest.Landscaper
	namespace  string
	itemType   lsv1alpha1.DeployItemType
	// counter counts the requests to the target.
	counter *faultnet.Counter
	// options are the options of the deployer.
	options helm.Options
	// log receives the log of the deployer.
	log logr.Logger
	// fetched counts the archives that were fetched.
	fetched *source
	manager *landscapertest.Manager
	// idle prevents that newWorld starts a deployer.
	idle bool
	// network connects the running deployer with its clusters.
	network *faultnet.Network
	// inner wraps the transport of the requests that the network lets through. It may be nil.
	inner func(http.RoundTripper) http.RoundTripper
	// full lists the requests for Secrets together with their data.
	full fullLists
}

// fullLists records lists and watches of Secrets that transfer the data of the Secrets, which the deployer must never
// request [Ex37].
type fullLists struct {
	mu    sync.Mutex
	found []string
}

// wrap returns a transport that records the requests.
func (f *fullLists) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if request, ok := faultnet.RequestOf(r); ok && request.Resource == "secrets" && (request.Verb == "list" || request.Verb == "watch") && !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.found = append(f.found, fmt.Sprintf("%+v", request))
		}
		return next.RoundTrip(r)
	})
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// source counts the calls of a Source.
type source struct {
	chart.Source

	count  int
	before func() // called before an archive is fetched; may be nil
}

func (s *source) Fetch(ctx context.Context, r chart.Request, id chart.Identity) (*chart.Archive, error) {
	s.count++
	if s.before != nil {
		s.before()
	}
	return s.Source.Fetch(ctx, r, id)
}

// newWorld creates a world and starts its deployer. The functions change the world before the start.
func newWorld(ctx context.Context, change ...func(*world)) *world {
	GinkgoHelper()
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err := client.NewWithWatch(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "helm-"}}
	Expect(c.Create(ctx, ns)).To(Succeed())
	w := &world{
		WithWatch: c, namespace: ns.Name, itemType: lsv1alpha1.DeployItemType("helm.deployerkit.dev/" + ns.Name),
		landscaper: landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID, DeployerType: true}),
		counter:    &faultnet.Counter{}, fetched: &source{Source: chart.Inline()}, log: logr.Discard(),
	}
	w.options = helm.Options{Targets: targets.Policy{AllowPrivateHosts: true}, Sources: chart.Sources{Inline: w.fetched}}
	DeferCleanup(func() {
		w.full.mu.Lock()
		defer w.full.mu.Unlock()
		Expect(w.full.found).To(BeEmpty(), "lists of Secrets with their data")
	})
	for _, f := range change {
		f(w)
	}
	Expect(w.landscaper.EnsureContext(ctx, w.namespace)).To(Succeed())
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(cp.Kubeconfig())})
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Create(ctx, &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cluster"},
		Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(raw)},
	})).To(Succeed())
	if !w.idle {
		w.start()
	}
	return w
}

// start starts the deployer.
func (w *world) start() {
	GinkgoHelper()
	w.network = faultnet.NewNetwork()
	w.manager = w.startReplica(w.network)
}

// startReplica starts a deployer with its own network.
func (w *world) startReplica(network *faultnet.Network, more ...landscapertest.ManagerOption) *landscapertest.Manager {
	GinkgoHelper()
	options := w.options
	options.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		if w.inner != nil {
			next = w.inner(next)
		}
		return w.counter.Transport(w.full.wrap(network.Transport(next)))
	}
	args := helm.Args(nil, options)
	args.Type, args.Options.MaxConcurrentReconciles = w.itemType, 1
	return landscapertest.StartManager(GinkgoTB(), network.Wrap(cp.Config), args, append(more, landscapertest.WithLog(w.log), landscapertest.WithOptions(func(o *ctrl.Options) {
		o.Cache.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	}))...)
}

// kill ends the deployer as SIGKILL does: none of its later requests reaches a cluster.
func (w *world) kill() {
	w.network.Kill()
	w.manager.Kill()
}

// config is the configuration of an item.
type config map[string]any

// manifestMode returns the configuration of an item in manifest mode that deploys a chart to the namespace of the world.
func (w *world) manifestMode(files charttest.Files, values map[string]any, more config) config {
	out := config{
		"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "name": "web", "namespace": w.namespace,
		"chart": map[string]any{"archive": map[string]any{"raw": files.Base64()}}, "helmDeployment": false,
	}
	if values != nil {
		out["values"] = values
	}
	maps.Copy(out, more)
	return out
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// deploy creates an item and waits for the end of its first job.
func (w *world) deploy(ctx context.Context, name string, c config) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := w.landscaper.Item(w.namespace, name, w.itemType, c)
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	Expect(w.landscaper.Deploy(ctx, di)).To(Succeed())
	return w.finished(ctx, name)
}

// finished waits for the end of a job.
func (w *world) finished(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	di, err := w.landscaper.WaitUntilFinished(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	return di
}

// again requests another job and waits for its end.
func (w *world) again(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	job, err := w.landscaper.Trigger(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	di, err := w.landscaper.WaitForJob(ctx, w.key(name), job)
	Expect(err).NotTo(HaveOccurred())
	return di
}

// update replaces the configuration of an item and waits for the end of the next job.
func (w *world) update(ctx context.Context, name string, c config) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	Expect(w.landscaper.Update(ctx, w.key(name), c)).To(Succeed())
	return w.again(ctx, name)
}

// remove deletes an item and waits until it is gone.
func (w *world) remove(ctx context.Context, name string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	Expect(w.landscaper.Delete(ctx, w.key(name))).To(Succeed())
}

// data returns a function that reads the data of a ConfigMap. The function returns nil if the ConfigMap does not exist.
func (w *world) data(ctx context.Context, name string) func(Gomega) map[string]string {
	return func(g Gomega) map[string]string {
		cm := &corev1.ConfigMap{}
		err := w.Get(ctx, w.key(name), cm)
		if apierrors.IsNotFound(err) {
			return nil
		}
		g.Expect(err).NotTo(HaveOccurred())
		return cm.Data
	}
}

// read reads a ConfigMap once.
func (w *world) read(ctx context.Context, name string) map[string]string {
	GinkgoHelper()
	return w.data(ctx, name)(NewWithT(GinkgoT()))
}

// edit changes a ConfigMap as a user would.
func (w *world) edit(ctx context.Context, name string, change func(*corev1.ConfigMap)) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(w.Get(ctx, w.key(name), cm)).To(Succeed())
	change(cm)
	Expect(w.Update(ctx, cm, client.FieldOwner("kubectl-edit"))).To(Succeed())
}

// spent returns the numbers of reads and writes since a snapshot.
func (w *world) spent(before faultnet.Counts) (reads, writes int) {
	got := w.counter.Snapshot().Since(before)
	return got.OnlyReads().Sum(), got.OnlyWrites().Sum()
}

// beSucceeded matches an item whose last job succeeded.
func beSucceeded() OmegaMatcher {
	return WithTransform(func(di *lsv1alpha1.DeployItem) string {
		if di.Status.LastError != nil {
			return string(di.Status.Phase) + ": " + di.Status.LastError.Message
		}
		return string(di.Status.Phase)
	}, Equal(string(lsv1alpha1.DeployItemPhases.Succeeded)))
}

// beFailed matches an item whose last job failed with an error that contains a text.
func beFailed(text string) OmegaMatcher {
	return WithTransform(func(di *lsv1alpha1.DeployItem) string {
		if di.Status.LastError == nil {
			return string(di.Status.Phase)
		}
		return string(di.Status.Phase) + ": " + di.Status.LastError.Message
	}, And(HavePrefix(string(lsv1alpha1.DeployItemPhases.Failed)+": "), ContainSubstring(text)))
}
