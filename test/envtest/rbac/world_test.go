// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	// patience is how long anything may take on a slow machine.
	patience = 30 * time.Second
	// secretKey is the key of the Secrets that Targets name.
	secretKey = "kubeconfig"
)

var phases = lsv1alpha1.DeployItemPhases

// world is a namespace with a deployer whose user has rights of its own.
type world struct {
	client client.Client // may do everything
	ls     *landscapertest.Landscaper
	ns     string
	user   string // of the deployer
	kind   lsv1alpha1.DeployItemType
	mgr    *landscapertest.Manager
	starts int
	elects bool // the examples do not
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	w := &world{}
	w.client, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "rbac-"}}
	Expect(w.client.Create(ctx, ns)).To(Succeed())
	w.ns, w.user = ns.Name, "system:serviceaccount:"+ns.Name+":deployer"
	w.kind = lsv1alpha1.DeployItemType("rbac.deployerkit.dev/" + w.ns)
	w.under(contract.JobID)
	return w
}

// under plays the Landscaper of a revision from now on.
func (w *world) under(revision contract.Revision) {
	w.ls = landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{Revision: revision})
}

// access is the access of a user whose requests are in the audit log.
func access(user string) *rest.Config {
	GinkgoHelper()
	config, err := cp.User(user, audited)
	Expect(err).NotTo(HaveOccurred())
	return config
}

// start runs the deployer as its user until the spec ends, as its program does: with an election or
// without, and with the cache of the programs.
func (w *world) start(args deployerlib.DeployerArgs, rules ...faultnet.Rule) {
	GinkgoHelper()
	args.Type = w.kind
	w.starts++ // a lease of its own: that of a manager that ended runs on
	network := faultnet.Start(GinkgoTB(), faultnet.Scenario{Rules: rules})
	w.mgr = landscapertest.StartManager(GinkgoTB(), network.Wrap(access(w.user)), args, landscapertest.WithOptions(func(o *ctrl.Options) {
		o.Cache = cache.Options{ByObject: deployerlib.CacheByObject(args.Type)}
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = w.elects, fmt.Sprintf("%s-%d", w.ns, w.starts), metav1.NamespaceDefault
		o.RetryPeriod = new(500 * time.Millisecond)
	}))
}

// target creates a Target that names a Secret with the content.
func (w *world) target(ctx context.Context, name string, content []byte) {
	GinkgoHelper()
	secret := &corev1.Secret{Data: map[string][]byte{secretKey: content}}
	secret.Namespace, secret.Name = w.ns, name
	Expect(w.client.Create(ctx, secret)).To(Succeed())
	target := &lsv1alpha1.Target{}
	target.Namespace, target.Name, target.Spec.Type = w.ns, name, "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: name, Key: secretKey}
	Expect(w.client.Create(ctx, target)).To(Succeed())
}

// cluster creates a Target with the access of a user, and gives it some rights in the world's namespace.
func (w *world) cluster(ctx context.Context) (user string) {
	GinkgoHelper()
	user = w.user + "-in-the-target"
	content, err := faultnet.Kubeconfig(access(user))
	Expect(err).NotTo(HaveOccurred())
	w.target(ctx, "cluster", content)
	return user
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

// create creates an item and asks for its first run.
func (w *world) create(ctx context.Context, name, target string, config any) {
	GinkgoHelper()
	di := w.ls.Item(w.ns, name, w.kind, config)
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: target}
	Expect(w.ls.Deploy(ctx, di)).To(Succeed())
}

// update changes the configuration and asks for a run, in either revision.
func (w *world) update(ctx context.Context, name string, config any) {
	GinkgoHelper()
	Expect(w.ls.Update(ctx, w.key(name), config)).To(Succeed())
	di, err := w.ls.Get(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	if di.Status.JobID != "" {
		w.again(ctx, name)
	}
}

// again asks for a run.
func (w *world) again(ctx context.Context, name string) {
	GinkgoHelper()
	_, err := w.ls.Trigger(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
}

// ends waits until an item has nothing to do and is in a phase.
func (w *world) ends(ctx context.Context, name string, phase lsv1alpha1.DeployItemPhase) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	var last *lsv1alpha1.DeployItem
	Eventually(func(g Gomega) {
		di, err := w.ls.Get(ctx, w.key(name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(di.Status.ObservedGeneration).To(Equal(di.Generation))
		g.Expect(di.Status.JobIDFinished).To(Equal(di.Status.JobID))
		g.Expect(di.Annotations).NotTo(HaveKey(lsv1alpha1.OperationAnnotation))
		g.Expect(di.Status.Phase).To(Equal(phase), "%+v", di.Status.LastError)
		last = di
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
	return last
}

// delete deletes an item and waits until it is gone.
func (w *world) delete(ctx context.Context, name string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	Expect(w.ls.Delete(ctx, w.key(name))).To(Succeed())
}

// lastError is what an item shows.
func (w *world) lastError(ctx context.Context, name string) func(Gomega) string {
	return func(g Gomega) string {
		di, err := w.ls.Get(ctx, w.key(name))
		g.Expect(err).NotTo(HaveOccurred())
		if di.Status.LastError == nil {
			return ""
		}
		return di.Status.LastError.Message
	}
}

// events are the events about an item, with how often each was repeated.
func (w *world) events(ctx context.Context, name string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &eventsv1.EventList{}
		g.Expect(w.client.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
		out := []string{}
		for _, e := range list.Items {
			if e.Regarding.Name == name {
				out = append(out, fmt.Sprintf("%s repeated:%v", e.Note, e.Series != nil))
			}
		}
		slices.Sort(out)
		return out
	}
}
