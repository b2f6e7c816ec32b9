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
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
	"github.com/deployerkit/deployerkit/upkeep"
)

// left returns a function for Eventually that reads the message of the condition FormerClusters. The function returns
// "" if there is no such condition.
func (w *env) left(ctx context.Context) func(Gomega) string {
	return func(g Gomega) string {
		condition := w.Condition(ctx, "item", upkeep.ConditionFormerClusters)(g)
		if condition == nil {
			return ""
		}
		return condition.Message
	}
}

// leaves waits until no object is left in a former cluster.
func (w *env) leaves(ctx context.Context) {
	GinkgoHelper()
	Eventually(w.left(ctx)).WithContext(ctx).WithTimeout(world.Patience).Should(BeEmpty())
}

// fails gives the item a wrong Target, with which no job succeeds. When the item reports the rejection of its first
// write, fails ends the job and corrects the Target. It checks that the object in the first cluster stays untouched.
func (w *env) fails(ctx context.Context, target, rejection string) {
	GinkgoHelper()
	before := w.in(ctx, w.Client)
	w.aim(ctx, target)
	_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) { // the deployer stores the former cluster before its first write, which the new one rejects
		status, err := json.Marshal(w.Stored(ctx, "item")(g).Status)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(status)).To(And(ContainSubstring(`"former"`), ContainSubstring(rejection)))
	}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
	Expect(w.in(ctx, w.Client)).To(Equal(before))
	Expect(w.Landscaper.Interrupt(ctx, w.Key("item"))).To(Succeed())
	w.succeeds(w.move(ctx, world.Cluster))
	Expect(w.in(ctx, w.Client)).To(Equal(before))
}

// place is a cluster with the Target that leads to it.
type place struct {
	target string
	client client.Client
}

// survives moves the item with a process that is killed before one of its writes. The parameter `nth` is the number of
// this write, counted from 1. Then another process continues. At the end, only the new cluster contains the object.
// The method returns false if the move needs fewer writes. A kill after a write leaves the same state as a kill before
// the next one, so it needs no move of its own.
func (w *env) survives(ctx context.Context, from, to place, nth int) bool {
	GinkgoHelper()
	rule := faultnet.Rule{Match: faultnet.Match{Verb: faultnet.WriteVerb}, Nth: nth, Fault: faultnet.KillBefore(), Optional: true}
	network := faultnet.Start(GinkgoTB(), faultnet.Scenario{Rules: []faultnet.Rule{rule}})
	network.Disarm()
	stop := landscapertest.Restarting(GinkgoTB(), network, func(n *faultnet.Network) *landscapertest.Manager {
		s := w.setup
		s.transport = n.Transport
		args := w.kind.args(s)
		args.Type = w.Type
		return landscapertest.StartManager(GinkgoTB(), n.Wrap(w.Config), args)
	})
	defer stop()
	network.Arm()
	w.succeeds(w.move(ctx, to.target))
	w.awaitGone(ctx, from.client)
	w.leaves(ctx)
	Expect(w.in(ctx, to.client)).NotTo(BeEmpty())
	return network.Report().Hits() > 0
}

// visitor returns a kubeconfig for the other cluster. Its user may only identify the cluster.
func (w *env) visitor(ctx context.Context) []byte {
	GinkgoHelper()
	user, err := there.User(w.Namespace)
	Expect(err).NotTo(HaveOccurred())
	world.Grant(ctx, there.Config, w.Namespace, metav1.NamespaceSystem, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}, ResourceNames: []string{metav1.NamespaceSystem},
	})
	kubeconfig, err := faultnet.Kubeconfig(user)
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}

// awaitReleased waits for an event which reports that the objects in the old cluster no longer belong to the item.
func (w *env) awaitReleased(ctx context.Context, reason string) {
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

// annotate sets an annotation of the item.
func (w *env) annotate(ctx context.Context, key, value string) {
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
				w.succeeds(w.move(ctx, other))
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
				w.awaitGone(ctx, w.Client)
				w.leaves(ctx)
				w.Delete(ctx, "item")
				Expect(w.in(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing in the old cluster before the new deployment has succeeded [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.in(ctx, w.Client)
				w.moveGated(ctx, other, inThere)
				Expect(w.in(ctx, w.Client)).To(Equal(before), "while the item waits")
				Expect(w.Landscaper.Interrupt(ctx, w.Key("item"))).To(Succeed())
				w.runsAgain(ctx, inThere)
				Expect(w.in(ctx, w.Client)).To(Equal(before), "after background runs")
				w.Manager.Stop()
				w.start()
				w.runsAgain(ctx, inThere)
				Expect(w.in(ctx, w.Client)).To(Equal(before), "after a restart")
				w.edit(ctx, inThere, "ready", "true")
				w.succeeds(w.Again(ctx, "item"))
				w.awaitGone(ctx, w.Client)
				w.leaves(ctx)
			}, SpecTimeout(5*time.Minute))

			for name, restart := range map[string]bool{"": false, ", also after a restart": true} {
				It("deletes the objects in the old cluster when it responds again"+name+" [F13]", func(ctx SpecContext) {
					w := newEnv(ctx, k, setup{})
					w.point(ctx, world.Cluster, nowhere())
					w.succeeds(w.move(ctx, other))
					Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
					Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("Target cluster: 1 objects"))
					Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
					w.point(ctx, world.Cluster, here.Kubeconfig())
					if restart {
						w.Manager.Stop()
						w.start()
					}
					w.awaitGone(ctx, w.Client)
					w.leaves(ctx)
					Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
				}, SpecTimeout(5*time.Minute))
			}

			It("keeps the objects if the item moves back before the clean-up [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.in(ctx, w.Client)
				w.point(ctx, world.Cluster, nowhere())
				w.succeeds(w.move(ctx, other))
				w.point(ctx, world.Cluster, here.Kubeconfig())
				w.succeeds(w.move(ctx, world.Cluster))
				w.awaitGone(ctx, inThere)
				w.leaves(ctx)
				Expect(w.in(ctx, w.Client)).To(Equal(before))
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing in another cluster to which the former Target leads now [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.in(ctx, w.Client)
				w.point(ctx, world.Cluster, there.Kubeconfig())
				w.moveGated(ctx, other, inThere)
				after := w.in(ctx, inThere)
				w.edit(ctx, inThere, "ready", "true")
				w.succeeds(w.Finished(ctx, "item"))
				w.awaitReleased(ctx, "the Target now refers to another cluster")
				w.leaves(ctx)
				Expect(w.in(ctx, inThere)).To(Equal(after))
				Expect(w.in(ctx, w.Client)).To(Equal(before))
			}, SpecTimeout(5*time.Minute))

			It("keeps the item until the old cluster is cleaned up, or an annotation releases its objects [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.aim(ctx, other)
				Expect(w.Client.Delete(ctx, &lsv1alpha1.Target{ObjectMeta: metaOf(w, world.Cluster)})).To(Succeed())
				w.succeeds(w.Again(ctx, "item"))
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("does not exist any more"))
				Expect(w.Landscaper.Mark(ctx, w.Key("item"))).To(Succeed())
				_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
				Expect(err).NotTo(HaveOccurred())
				w.awaitGone(ctx, inThere)
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("Target cluster: 1 objects"))
				w.annotate(ctx, upkeep.ReleaseAnnotation, "true")
				Eventually(func() error { return w.Client.Get(ctx, w.Key("item"), &lsv1alpha1.DeployItem{}) }).WithContext(ctx).
					WithTimeout(world.Patience).ShouldNot(Succeed())
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
				w.awaitReleased(ctx, upkeep.ReleaseAnnotation)
			}, SpecTimeout(5*time.Minute))

			It("leaves objects only in the new cluster, regardless of the write before which the process is killed [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.Manager.Stop()
				to, from := place{other, inThere}, place{world.Cluster, w.Client}
				writes := 0
				for w.survives(ctx, from, to, writes+1) {
					writes++
					to, from = from, to
				}
				Expect(writes).To(BeNumerically(">=", 4), "at least two writes of the item, one of the object, and its deletion")
			}, SpecTimeout(9*time.Minute))

			It("deploys the item again when it moves back [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.succeeds(w.move(ctx, other))
				w.succeeds(w.move(ctx, world.Cluster))
				w.awaitGone(ctx, inThere)
				w.leaves(ctx)
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing because of a Target without content that is corrected [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.in(ctx, w.Client)
				w.CreateTarget(ctx, "wrong", []byte(`{}`))
				Expect(w.move(ctx, "wrong").Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Failed))
				w.succeeds(w.move(ctx, world.Cluster))
				Expect(w.in(ctx, w.Client)).To(Equal(before))
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing because of the Target of a cluster without the namespace that is corrected [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{bare: true})
				w.fails(ctx, other, "does not exist")
				w.leaves(ctx)
				Expect(w.in(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes nothing because of a Target without rights that is corrected [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.CreateTarget(ctx, "wrong", w.visitor(ctx))
				w.fails(ctx, "wrong", "cannot patch")
				w.leaves(ctx) // the first write was rejected, so nothing exists
				Expect(w.in(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("reports an object that may not be deleted in the old cluster until an annotation releases it [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.CreateTarget(ctx, "wrong", w.visitor(ctx))
				world.Grant(ctx, there.Config, w.Namespace, w.Namespace, rbacv1.PolicyRule{
					APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch"},
				})
				w.succeeds(w.move(ctx, "wrong"))
				w.awaitGone(ctx, w.Client)
				w.succeeds(w.move(ctx, world.Cluster))
				Eventually(w.left(ctx)).WithContext(ctx).WithTimeout(world.Patience).
					Should(And(ContainSubstring("Target wrong: 1 objects"), ContainSubstring("forbidden")))
				w.annotate(ctx, upkeep.ReleaseAnnotation, "true")
				w.leaves(ctx)
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("waits for nothing if the Target of the item leads to another cluster now [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.point(ctx, world.Cluster, there.Kubeconfig())
				w.succeeds(w.Again(ctx, "item"))
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(BeEmpty())
				w.awaitReleased(ctx, "the Target now refers to another cluster")
				w.Delete(ctx, "item")
				Expect(w.in(ctx, inThere)).To(BeEmpty())
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deploys the item only after the clean-up of the old cluster, if this comes first [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{cleanUpFirst: true})
				w.hold(ctx, `["example.com/hold"]`)
				w.aim(ctx, other)
				job, err := w.Landscaper.Trigger(ctx, w.Key("item"))
				Expect(err).NotTo(HaveOccurred())
				Eventually(w.left(ctx)).WithContext(ctx).WithTimeout(world.Patience).Should(ContainSubstring("Target cluster: 1 objects"))
				Expect(w.in(ctx, inThere)).To(BeEmpty())
				w.hold(ctx, "null")
				di, err := w.Landscaper.AwaitJob(ctx, w.Key("item"), job)
				Expect(err).NotTo(HaveOccurred())
				w.succeeds(di)
				Expect(w.in(ctx, w.Client)).To(BeEmpty())
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("keeps objects with a policy that excludes their deletion [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{keeps: true})
				w.succeeds(w.move(ctx, other))
				w.leaves(ctx)
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))
		})
	}

	It("keeps children that the deployer never deletes, even if the clean-up comes first [F13]", func(ctx SpecContext) {
		w := newEnv(ctx, kinds[1], setup{keeps: true, cleanUpFirst: true})
		before := w.in(ctx, w.Client)
		w.succeeds(w.move(ctx, other))
		w.leaves(ctx)
		Expect(w.in(ctx, w.Client)).To(Equal(before))
		Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	for _, k := range kinds[:2] { // the other kind has no plan
		It("shows the move in a plan of the deployer "+k.name+" [F13]", func(ctx SpecContext) {
			w := newEnv(ctx, k, setup{})
			leave, object := `leave the cluster \S+ of Target `+world.Cluster+`\n`, "ConfigMap "+w.Namespace+"/"+object
			released := "^create " + object + "\n" + leave + "  release 1 objects\n2 to do, 0 unchanged\n$"
			di := w.Get(ctx, "item")
			Expect(w.plan(ctx, di)).To(MatchRegexp(released), "the same Target leads to another cluster")
			di.Spec.Target.Name = other
			Expect(w.plan(ctx, di)).To(MatchRegexp("^create " + object + "\n" + leave + "  delete " + object + "\n2 to do, 0 unchanged\n$"))
			di.Annotations[upkeep.ReleaseAnnotation] = "true"
			Expect(w.plan(ctx, di)).To(MatchRegexp(released), "an annotation releases the object")
			delete(di.Annotations, upkeep.ReleaseAnnotation)
			w.setup.keeps = true
			if k.name == "manifest" { // the policy of the object is stored with the object
				w.succeeds(w.Update(ctx, "item", k.config(w, false)))
				di.Status = w.Get(ctx, "item").Status
			}
			Expect(w.plan(ctx, di)).To(MatchRegexp(released), "the deployer leaves its objects")
		}, SpecTimeout(5*time.Minute))
	}
})

// plan returns the plan of the item for the other cluster.
func (w *env) plan(ctx context.Context, di *lsv1alpha1.DeployItem) string {
	GinkgoHelper()
	var plan apply.Plan
	var err error
	if w.kind.name == "manifest" {
		plan, err = manifest.Plan(ctx, w.Client, inThere, di, manifest.Options{})
	} else {
		plan, err = declarative.Plan(ctx, w.Client, inThere, declarative.HandlerFunc(answer), declarativeOptions(w.setup), di)
	}
	Expect(err).NotTo(HaveOccurred())
	return plan.String()
}
