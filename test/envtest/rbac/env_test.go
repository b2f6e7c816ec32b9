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
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const (
	// patience is the time limit of all waits. It is long, because the machine may be slow.
	patience = world.Patience
	// secretKey is the key of the kubeconfig in the Secrets that Targets name.
	secretKey = "kubeconfig"
)

var phases = lsv1alpha1.DeployItemPhases

// env is the environment of a spec: a world.World with a deployer. The user of the deployer has only the rights of its
// role.
type env struct {
	*world.World
	user   string // the user of the deployer
	starts int
	elects bool // if true, the deployer uses leader election; the examples do not use it
}

func newEnv(ctx context.Context) *env {
	GinkgoHelper()
	w := &env{World: world.New(ctx, GinkgoTB(), cp, world.Options{Name: "rbac", NoTarget: true})}
	w.user = "system:serviceaccount:" + w.Namespace + ":deployer"
	return w
}

// setRevision changes the revision that the Landscaper of the world follows.
func (w *env) setRevision(revision contract.Revision) {
	w.Landscaper = landscapertest.NewLandscaper(w.Client, landscapertest.LandscaperOptions{Revision: revision})
}

// newAuditedConfig returns a config for a user whose requests are recorded in the audit log.
func newAuditedConfig(user string) *rest.Config {
	GinkgoHelper()
	config, err := cp.AddUser(user, audited)
	Expect(err).NotTo(HaveOccurred())
	return config
}

// start runs the deployer under its user until the spec ends. The deployer uses the same cache options as a program. If
// the field `elects` is true, the deployer also uses leader election.
func (w *env) start(args deployerlib.DeployerArgs, rules ...faultnet.Rule) {
	GinkgoHelper()
	w.starts++ // each start uses its own lease, because the lease of a stopped manager has not expired yet
	network := faultnet.Start(GinkgoTB(), faultnet.Scenario{Rules: rules})
	w.Config = network.Wrap(newAuditedConfig(w.user))
	w.Start(args, landscapertest.WithOptions(func(o *ctrl.Options) {
		o.Cache = cache.Options{ByObject: deployerlib.CacheByObject(w.Type)}
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = w.elects, fmt.Sprintf("%s-%d", w.Namespace, w.starts), metav1.NamespaceDefault
		o.RetryPeriod = new(500 * time.Millisecond)
	}))
}

// createTarget creates a Target and the Secret to which the Target refers.
func (w *env) createTarget(ctx context.Context, name string, content []byte) {
	GinkgoHelper()
	secret := &corev1.Secret{Data: map[string][]byte{secretKey: content}}
	secret.Namespace, secret.Name = w.Namespace, name
	Expect(w.Client.Create(ctx, secret)).To(Succeed())
	target := &lsv1alpha1.Target{}
	target.Namespace, target.Name, target.Spec.Type = w.Namespace, name, "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: name, Key: secretKey}
	Expect(w.Client.Create(ctx, target)).To(Succeed())
}

// createTargetUser creates a user with some rights in the namespace of the world, and a Target for this user. It
// returns the name of the user.
func (w *env) createTargetUser(ctx context.Context) (user string) {
	GinkgoHelper()
	user = w.user + "-in-the-target"
	content, err := faultnet.EncodeKubeconfig(newAuditedConfig(user))
	Expect(err).NotTo(HaveOccurred())
	w.createTarget(ctx, "cluster", content)
	return user
}

// create creates an item and requests its first run.
func (w *env) create(ctx context.Context, name, target string, config any) {
	GinkgoHelper()
	di := w.Landscaper.Item(w.Namespace, name, w.Type, config)
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: target}
	Expect(w.Landscaper.Deploy(ctx, di)).To(Succeed())
}

// update replaces the configuration of an item and requests a run in the current revision.
func (w *env) update(ctx context.Context, name string, config any) {
	GinkgoHelper()
	Expect(w.Landscaper.Update(ctx, w.Key(name), config)).To(Succeed())
	di, err := w.Landscaper.Get(ctx, w.Key(name))
	Expect(err).NotTo(HaveOccurred())
	if di.Status.JobID != "" {
		w.startJob(ctx, name)
	}
}

// startJob requests another run of an item.
func (w *env) startJob(ctx context.Context, name string) {
	GinkgoHelper()
	_, err := w.Landscaper.Trigger(ctx, w.Key(name))
	Expect(err).NotTo(HaveOccurred())
}

// waitForPhase waits until the run of an item has ended in the given phase.
func (w *env) waitForPhase(ctx context.Context, name string, phase lsv1alpha1.DeployItemPhase) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	var last *lsv1alpha1.DeployItem
	Eventually(func(g Gomega) {
		di, err := w.Landscaper.Get(ctx, w.Key(name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(di.Status.ObservedGeneration).To(Equal(di.Generation))
		g.Expect(di.Status.JobIDFinished).To(Equal(di.Status.JobID))
		g.Expect(di.Annotations).NotTo(HaveKey(lsv1alpha1.OperationAnnotation))
		g.Expect(di.Status.Phase).To(Equal(phase), "lastError: %+v", di.Status.LastError)
		last = di
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
	return last
}

// lastError returns a function for Eventually that reads the message of the last error of an item.
func (w *env) lastError(ctx context.Context, name string) func(Gomega) string {
	return func(g Gomega) string {
		di, err := w.Landscaper.Get(ctx, w.Key(name))
		g.Expect(err).NotTo(HaveOccurred())
		if di.Status.LastError == nil {
			return ""
		}
		return di.Status.LastError.Message
	}
}

// events returns a function for Eventually that reads the events about an item, and how often each event occurred.
func (w *env) events(ctx context.Context, name string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &eventsv1.EventList{}
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
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
