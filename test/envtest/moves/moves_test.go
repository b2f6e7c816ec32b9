// SPDX-License-Identifier: Apache-2.0

package moves_test

import (
	"context"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// getFormerClusters returns a function for Eventually that reads the message of the condition FormerClusters. The
// function returns "" if there is no such condition.
func (w *env) getFormerClusters(ctx context.Context) func(Gomega) string {
	return func(g Gomega) string {
		condition := w.Condition(ctx, "item", managed.ConditionFormerClusters)(g)
		if condition == nil {
			return ""
		}
		return condition.Message
	}
}

// waitUntilCleanedUp waits until no object is left in a former cluster.
func (w *env) waitUntilCleanedUp(ctx context.Context) {
	GinkgoHelper()
	Eventually(w.getFormerClusters(ctx)).WithContext(ctx).WithTimeout(world.Patience).Should(BeEmpty())
}

// failAndCorrectTarget gives the item a wrong Target, with which no job succeeds. When the item reports the rejection
// of its first write, failAndCorrectTarget ends the job and corrects the Target. It checks that the object in the first
// cluster stays untouched.
func (w *env) failAndCorrectTarget(ctx context.Context, target, rejection string) {
	GinkgoHelper()
	before := w.getUID(ctx, w.Client)
	w.setTarget(ctx, target)
	_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) { // the deployer stores the former cluster before its first write, which the new one rejects
		status, err := json.Marshal(w.ReadItem(ctx, "item")(g).Status)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(status)).To(And(ContainSubstring(`"former"`), ContainSubstring(rejection)))
	}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
	Expect(w.getUID(ctx, w.Client)).To(Equal(before))
	Expect(w.Landscaper.Interrupt(ctx, w.Key("item"))).To(Succeed())
	w.expectSucceeded(w.moveAndWait(ctx, world.Cluster))
	Expect(w.getUID(ctx, w.Client)).To(Equal(before))
}

// place is a cluster with the Target that leads to it.
type place struct {
	target string
	client client.Client
}

// restartAtWrite moves the item with a process that is killed before its nth write, counted from 1. Then another
// process continues. At the end, only the new cluster contains the object. The method returns false if the move needs
// fewer writes. A kill after a write leaves the same state as a kill before the next one, so it needs no move of its
// own.
func (w *env) restartAtWrite(ctx context.Context, from, to place, nth int) bool {
	GinkgoHelper()
	rule := faultnet.Rule{Match: faultnet.Match{Verb: faultnet.WriteVerb}, Nth: nth, Fault: faultnet.KillBefore(), Optional: true}
	network := faultnet.Start(GinkgoTB(), faultnet.Scenario{Rules: []faultnet.Rule{rule}})
	network.Disable()
	stop := landscapertest.RunWithRestart(GinkgoTB(), network, func(n *faultnet.Network) *landscapertest.Manager {
		s := w.setup
		s.transport = n.Transport
		args := w.kind.args(s)
		args.Type = w.Type
		return landscapertest.StartManager(GinkgoTB(), n.Wrap(w.Config), args)
	})
	defer stop()
	network.Enable()
	w.expectSucceeded(w.moveAndWait(ctx, to.target))
	w.waitUntilDeleted(ctx, from.client)
	w.waitUntilCleanedUp(ctx)
	Expect(w.getUID(ctx, to.client)).NotTo(BeEmpty())
	return network.Report().SumHits() > 0
}

// newReadOnlyKubeconfig returns a kubeconfig for the other cluster. Its user may only identify the cluster.
func (w *env) newReadOnlyKubeconfig(ctx context.Context) []byte {
	GinkgoHelper()
	user, err := there.AddUser(w.Namespace)
	Expect(err).NotTo(HaveOccurred())
	world.GrantRules(ctx, there.Config, w.Namespace, metav1.NamespaceSystem, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}, ResourceNames: []string{metav1.NamespaceSystem},
	})
	kubeconfig, err := faultnet.EncodeKubeconfig(user)
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}

// waitForReleaseEvent waits for an event which reports that the objects in the old cluster no longer belong to the
// item.
func (w *env) waitForReleaseEvent(ctx context.Context, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		events := &eventsv1.EventList{}
		g.Expect(w.Client.List(ctx, events, client.InNamespace(w.Namespace))).To(Succeed())
		g.Expect(events.Items).To(ContainElement(And(
			HaveField("Reason", "Released"), HaveField("Regarding.Name", "item"),
			HaveField("Note", And(HavePrefix("1 objects in the cluster "), ContainSubstring("of Target cluster"), ContainSubstring(reason))),
		)))
	}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
}

// setAnnotation sets an annotation of the item.
func (w *env) setAnnotation(ctx context.Context, key, value string) {
	GinkgoHelper()
	di := w.Get(ctx, "item")
	patch := client.MergeFrom(di.DeepCopy())
	if di.Annotations == nil {
		di.Annotations = map[string]string{}
	}
	di.Annotations[key] = value
	Expect(w.Client.Patch(ctx, di, patch)).To(Succeed())
}

var _ = Describe("Move of an item to another cluster", func() {
	for _, k := range kinds {
		Context("of the deployer "+k.name, func() {
			It("deploys the item to the new cluster, deletes its objects in the old one, and deletes the item from the new one [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.expectSucceeded(w.moveAndWait(ctx, other))
				Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
				w.waitUntilDeleted(ctx, w.Client)
				w.waitUntilCleanedUp(ctx)
				w.Delete(ctx, "item")
				Expect(w.getUID(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing in the old cluster before the new deployment has succeeded [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.getUID(ctx, w.Client)
				w.startGatedMove(ctx, other, inThere)
				Expect(w.getUID(ctx, w.Client)).To(Equal(before), "while the item waits")
				Expect(w.Landscaper.Interrupt(ctx, w.Key("item"))).To(Succeed())
				w.waitForCorrections(ctx, inThere)
				Expect(w.getUID(ctx, w.Client)).To(Equal(before), "after background runs")
				w.Manager.Stop()
				w.start()
				w.waitForCorrections(ctx, inThere)
				Expect(w.getUID(ctx, w.Client)).To(Equal(before), "after a restart")
				w.patchObject(ctx, inThere, "ready", "true")
				w.expectSucceeded(w.RunAgain(ctx, "item"))
				w.waitUntilDeleted(ctx, w.Client)
				w.waitUntilCleanedUp(ctx)
			}, SpecTimeout(5*time.Minute))

			for name, restart := range map[string]bool{"": false, ", also after a restart": true} {
				It("deletes the objects in the old cluster when it responds again"+name+" [F13]", func(ctx SpecContext) {
					w := newEnv(ctx, k, setup{})
					w.setKubeconfig(ctx, world.Cluster, newUnreachableKubeconfig())
					w.expectSucceeded(w.moveAndWait(ctx, other))
					Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
					Expect(w.getFormerClusters(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("Target cluster: 1 objects"))
					Expect(w.getUID(ctx, w.Client)).NotTo(BeEmpty())
					w.setKubeconfig(ctx, world.Cluster, here.Kubeconfig())
					if restart {
						w.Manager.Stop()
						w.start()
					}
					w.waitUntilDeleted(ctx, w.Client)
					w.waitUntilCleanedUp(ctx)
					Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
				}, SpecTimeout(5*time.Minute))
			}

			It("keeps the objects if the item moves back before the clean-up [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.getUID(ctx, w.Client)
				w.setKubeconfig(ctx, world.Cluster, newUnreachableKubeconfig())
				w.expectSucceeded(w.moveAndWait(ctx, other))
				w.setKubeconfig(ctx, world.Cluster, here.Kubeconfig())
				w.expectSucceeded(w.moveAndWait(ctx, world.Cluster))
				w.waitUntilDeleted(ctx, inThere)
				w.waitUntilCleanedUp(ctx)
				Expect(w.getUID(ctx, w.Client)).To(Equal(before))
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing in another cluster to which the former Target leads now [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.getUID(ctx, w.Client)
				w.setKubeconfig(ctx, world.Cluster, there.Kubeconfig())
				w.startGatedMove(ctx, other, inThere)
				after := w.getUID(ctx, inThere)
				w.patchObject(ctx, inThere, "ready", "true")
				w.expectSucceeded(w.Finished(ctx, "item"))
				w.waitForReleaseEvent(ctx, "the Target now refers to another cluster")
				w.waitUntilCleanedUp(ctx)
				Expect(w.getUID(ctx, inThere)).To(Equal(after))
				Expect(w.getUID(ctx, w.Client)).To(Equal(before))
			}, SpecTimeout(5*time.Minute))

			It("keeps the item until the old cluster is cleaned up, or an annotation releases its objects [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.setTarget(ctx, other)
				Expect(w.Client.Delete(ctx, &lsv1alpha1.Target{ObjectMeta: metaOf(w, world.Cluster)})).To(Succeed())
				w.expectSucceeded(w.RunAgain(ctx, "item"))
				Expect(w.getFormerClusters(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("does not exist any more"))
				Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
				_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
				Expect(err).NotTo(HaveOccurred())
				w.waitUntilDeleted(ctx, inThere)
				Expect(w.getFormerClusters(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("Target cluster: 1 objects"))
				w.setAnnotation(ctx, managed.ReleaseAnnotation, "true")
				Eventually(func() error { return w.Client.Get(ctx, w.Key("item"), &lsv1alpha1.DeployItem{}) }).WithContext(ctx).
					WithTimeout(world.Patience).ShouldNot(Succeed())
				Expect(w.getUID(ctx, w.Client)).NotTo(BeEmpty())
				w.waitForReleaseEvent(ctx, managed.ReleaseAnnotation)
			}, SpecTimeout(5*time.Minute))

			It("leaves objects only in the new cluster, regardless of the write before which the process is killed [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.Manager.Stop()
				to, from := place{other, inThere}, place{world.Cluster, w.Client}
				writes := 0
				for w.restartAtWrite(ctx, from, to, writes+1) {
					writes++
					to, from = from, to
				}
				Expect(writes).To(BeNumerically(">=", 4), "at least two writes of the item, one of the object, and its deletion")
			}, SpecTimeout(9*time.Minute))

			It("deploys the item again when it moves back [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.expectSucceeded(w.moveAndWait(ctx, other))
				w.expectSucceeded(w.moveAndWait(ctx, world.Cluster))
				w.waitUntilDeleted(ctx, inThere)
				w.waitUntilCleanedUp(ctx)
				Expect(w.getUID(ctx, w.Client)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing because of a Target without content that is corrected [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.getUID(ctx, w.Client)
				w.CreateTarget(ctx, "wrong", []byte(`{}`))
				Expect(w.moveAndWait(ctx, "wrong").Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Failed))
				w.expectSucceeded(w.moveAndWait(ctx, world.Cluster))
				Expect(w.getUID(ctx, w.Client)).To(Equal(before))
				Expect(w.getFormerClusters(ctx)(NewWithT(GinkgoTB()))).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing because of the Target of a cluster without the namespace that is corrected [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{bare: true})
				w.failAndCorrectTarget(ctx, other, "does not exist")
				w.waitUntilCleanedUp(ctx)
				Expect(w.getUID(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing because of a Target without rights that is corrected [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.CreateTarget(ctx, "wrong", w.newReadOnlyKubeconfig(ctx))
				w.failAndCorrectTarget(ctx, "wrong", "cannot patch")
				// The effect of a write that the interrupt cancelled is not known without a read.
				world.GrantRules(ctx, there.Config, w.Namespace, w.Namespace, rbacv1.PolicyRule{
					APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
				})
				w.waitUntilCleanedUp(ctx)
				Expect(w.getUID(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("reports an object that may not be deleted in the old cluster until an annotation releases it [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.CreateTarget(ctx, "wrong", w.newReadOnlyKubeconfig(ctx))
				world.GrantRules(ctx, there.Config, w.Namespace, w.Namespace, rbacv1.PolicyRule{
					APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch"},
				})
				w.expectSucceeded(w.moveAndWait(ctx, "wrong"))
				w.waitUntilDeleted(ctx, w.Client)
				w.expectSucceeded(w.moveAndWait(ctx, world.Cluster))
				Eventually(w.getFormerClusters(ctx)).WithContext(ctx).WithTimeout(world.Patience).
					Should(And(ContainSubstring("Target wrong: 1 objects"), ContainSubstring("forbidden")))
				w.setAnnotation(ctx, managed.ReleaseAnnotation, "true")
				w.waitUntilCleanedUp(ctx)
				Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("waits for nothing if the Target of the item leads to another cluster now [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.setKubeconfig(ctx, world.Cluster, there.Kubeconfig())
				w.expectSucceeded(w.RunAgain(ctx, "item"))
				Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
				Expect(w.getUID(ctx, w.Client)).NotTo(BeEmpty())
				Expect(w.getFormerClusters(ctx)(NewWithT(GinkgoTB()))).To(BeEmpty())
				w.waitForReleaseEvent(ctx, "the Target now refers to another cluster")
				w.Delete(ctx, "item")
				Expect(w.getUID(ctx, inThere)).To(BeEmpty())
				Expect(w.getUID(ctx, w.Client)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deploys the item only after the clean-up of the old cluster, if this comes first [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{cleanUpFirst: true})
				w.setFinalizers(ctx, `["example.com/hold"]`)
				w.setTarget(ctx, other)
				job, err := w.Landscaper.Trigger(ctx, w.Key("item"))
				Expect(err).NotTo(HaveOccurred())
				Eventually(w.getFormerClusters(ctx)).WithContext(ctx).WithTimeout(world.Patience).Should(ContainSubstring("Target cluster: 1 objects"))
				Expect(w.getUID(ctx, inThere)).To(BeEmpty())
				w.setFinalizers(ctx, "null")
				di, err := w.Landscaper.WaitForJob(ctx, w.Key("item"), job)
				Expect(err).NotTo(HaveOccurred())
				w.expectSucceeded(di)
				Expect(w.getUID(ctx, w.Client)).To(BeEmpty())
				Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("keeps objects with a policy that excludes their deletion [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{keeps: true})
				w.expectSucceeded(w.moveAndWait(ctx, other))
				w.waitUntilCleanedUp(ctx)
				Expect(w.getUID(ctx, w.Client)).NotTo(BeEmpty())
				Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))
		})
	}

	It("keeps children that the deployer never deletes, even if the clean-up comes first [F13]", func(ctx SpecContext) {
		w := newEnv(ctx, kinds[1], setup{keeps: true, cleanUpFirst: true})
		before := w.getUID(ctx, w.Client)
		w.expectSucceeded(w.moveAndWait(ctx, other))
		w.waitUntilCleanedUp(ctx)
		Expect(w.getUID(ctx, w.Client)).To(Equal(before))
		Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	for _, k := range kinds[:2] { // the other kind has no plan
		It("shows the move in a plan of the deployer "+k.name+" [F13]", func(ctx SpecContext) {
			w := newEnv(ctx, k, setup{})
			leave, object := `leave the cluster \S+ of Target `+world.Cluster+`\n`, "ConfigMap "+w.Namespace+"/"+object
			released := "^create " + object + "\n" + leave + "  release 1 objects\n2 to do, 0 unchanged\n$"
			di := w.Get(ctx, "item")
			Expect(w.getPlan(ctx, di)).To(MatchRegexp(released), "the same Target leads to another cluster")
			di.Spec.Target.Name = other
			Expect(w.getPlan(ctx, di)).To(MatchRegexp("^create " + object + "\n" + leave + "  delete " + object + "\n2 to do, 0 unchanged\n$"))
			di.Annotations[managed.ReleaseAnnotation] = "true"
			Expect(w.getPlan(ctx, di)).To(MatchRegexp(released), "an annotation releases the object")
			delete(di.Annotations, managed.ReleaseAnnotation)
			w.setup.keeps = true
			if k.name == "manifest" { // the policy of the object is stored with the object
				w.expectSucceeded(w.Update(ctx, "item", k.config(w, false)))
				di.Status = w.Get(ctx, "item").Status
			}
			Expect(w.getPlan(ctx, di)).To(MatchRegexp(released), "the deployer leaves its objects")
		}, SpecTimeout(5*time.Minute))
	}
})

// getPlan returns the plan of the item for the other cluster.
func (w *env) getPlan(ctx context.Context, di *lsv1alpha1.DeployItem) string {
	GinkgoHelper()
	var plan apply.Plan
	var err error
	if w.kind.name == "manifest" {
		plan, err = manifest.Plan(ctx, w.Client, inThere, di, manifest.Options{})
	} else {
		plan, err = declarative.Plan(ctx, w.Client, inThere, declarative.HandlerFunc(handleSync), newDeclarativeOptions(w.setup), di)
	}
	Expect(err).NotTo(HaveOccurred())
	return plan.String()
}
