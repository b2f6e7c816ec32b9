// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/examples/galera"
	"github.com/deployerkit/deployerkit/stategraph"
)

// newGaleraGraph builds the graph of the example.
func newGaleraGraph() *stategraph.Graph {
	GinkgoHelper()
	g, err := galera.BuildGraph()
	Expect(err).NotTo(HaveOccurred())
	return g
}

// newGaleraConfig returns the configuration of an item whose objects are in the namespace of the world.
func (w *env) newGaleraConfig(replicas int, maxConnections string) galera.Config {
	return galera.Config{Namespace: w.Namespace, Replicas: replicas, Image: "example.com/none:1", Settings: map[string]string{"max_connections": maxConnections}}
}

// createCertificates writes the certificates that an item has requested, as the issuer does after a while.
func (w *env) createCertificates(ctx context.Context, name string) {
	GinkgoHelper()
	request := &corev1.Secret{}
	Eventually(func() error { return w.Client.Get(ctx, w.Key(name+"-tls"), request) }).WithTimeout(patience).Should(Succeed())
	Expect(request.Annotations).To(HaveKeyWithValue("example.org/issue-for", "*."+name+"-db."+w.Namespace+".svc"))
	pem := []byte("pem")
	answer := mergePatch(map[string]any{"data": map[string][]byte{corev1.TLSCertKey: pem, corev1.TLSPrivateKeyKey: pem}})
	Expect(w.Client.Patch(ctx, request, answer, client.FieldOwner("issuer"))).To(Succeed())
}

// listConfigurations returns a function for Eventually that reads the my.cnf of every configuration. The keys are the
// names of the ConfigMaps.
func (w *env) listConfigurations(ctx context.Context) func(Gomega) map[string]string {
	return func(g Gomega) map[string]string {
		list := &corev1.ConfigMapList{}
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace), client.MatchingLabels{stategraph.LabelComponent: "configuration"})).To(Succeed())
		out := map[string]string{}
		for _, cm := range list.Items {
			out[cm.Name] = cm.Data["my.cnf"]
		}
		return out
	}
}

// getStates returns a function for Eventually that reads the states of the components from the status. The keys are the
// names of the components.
func (w *env) getStates(ctx context.Context, name string) func(Gomega) map[string]string {
	return func(g Gomega) map[string]string {
		out := map[string]string{}
		for _, one := range w.status(ctx, name)(g).Components {
			out[one.Name] = string(one.State)
		}
		return out
	}
}

// condition returns a function for Eventually that reads the message of the condition GraphReady.
func (w *env) condition(ctx context.Context, name string) func(Gomega) string {
	return func(g Gomega) string {
		found := contract.GetCondition(w.ReadItem(ctx, name)(g).Status.Conditions, stategraph.ConditionReady)
		if found == nil {
			return ""
		}
		return string(found.Status) + " " + found.Reason + ": " + found.Message
	}
}

var _ = Describe("Galera example", func() {
	It("installs the parts of Galera when their requirements are ready, and deletes them in reverse [Y4, Y8, Y9, Y10, Y26, Y29, Yx9]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		stuck.set(w.Namespace, true)
		DeferCleanup(stuck.set, w.Namespace, false)
		w.start(newGaleraGraph())
		w.begin(ctx, "galera", w.newGaleraConfig(3, "100"))

		By("waiting for the issuer")
		blocked := func(name string) stategraph.ComponentStatus {
			return stategraph.ComponentStatus{Name: name, State: stategraph.StateBlocked, BlockedBy: []string{"certificates"}}
		}
		Eventually(w.status(ctx, "galera")).WithTimeout(patience).Should(HaveField("Components", Equal([]stategraph.ComponentStatus{
			{Name: "service", State: stategraph.StateReady},
			{Name: "certificates", State: stategraph.StateProgressing, Reason: "Secret " + w.Namespace + "/galera-tls: the issuer has not answered"},
			{Name: "configuration", State: stategraph.StateReady},
			blocked("database"), blocked("haproxy"), blocked("public-service"),
		})))
		Expect(w.condition(ctx, "galera")(NewGomega(Fail))).To(Equal(
			"False Progressing: database, haproxy, public-service blocked by certificates: Secret " + w.Namespace + "/galera-tls: the issuer has not answered"))
		Consistently(func() bool { return w.hasObject(ctx, &appsv1.StatefulSet{}, "galera") }).WithTimeout(time.Second).Should(BeFalse())
		w.createCertificates(ctx, "galera")

		By("starting the database, one Pod after the other")
		Eventually(func() bool { return w.hasObject(ctx, &appsv1.StatefulSet{}, "galera") }).WithTimeout(patience).Should(BeTrue())
		stuck.set(w.Namespace+"/galera-0", true)
		Eventually(w.condition(ctx, "galera")).WithTimeout(patience).Should(And(
			HavePrefix("False Progressing: haproxy, "), ContainSubstring("blocked by database: StatefulSet.apps "+w.Namespace+"/galera: "), ContainSubstring("1/3")))
		Expect(w.hasObject(ctx, &appsv1.Deployment{}, "galera-haproxy")).To(BeFalse())

		By("waiting until everything is ready")
		stuck.set(w.Namespace, false)
		w.waitUntilSucceeded(ctx, "galera")
		Expect(w.condition(ctx, "galera")(NewGomega(Fail))).To(Equal("True AllReady: all 6 components are ready"))
		Expect(w.hasObject(ctx, &corev1.Service{}, "galera")).To(BeTrue())
		request := &corev1.Secret{}
		Expect(w.hasObject(ctx, request, "galera-tls")).To(BeTrue())
		Expect(request.Data).To(HaveLen(2), "the fields of the issuer are kept")

		By("deleting the item while the database takes time to stop")
		before := w.Counter.Snapshot()
		w.setFinalizer(ctx, &appsv1.StatefulSet{}, "galera", true)
		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("galera"))).To(Succeed())
		_, err := w.Landscaper.Trigger(ctx, w.Key("galera"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.getStates(ctx, "galera")).WithTimeout(patience).Should(Equal(map[string]string{
			"database": "Removing", "service": "Blocked", "certificates": "Blocked", "configuration": "Blocked",
		}))
		Expect(w.hasObject(ctx, &corev1.Service{}, "galera")).To(BeFalse())
		Expect(w.hasObject(ctx, &appsv1.Deployment{}, "galera-haproxy")).To(BeFalse())
		Consistently(func() bool {
			return w.hasObject(ctx, &corev1.Service{}, "galera-db") && w.hasObject(ctx, &corev1.Secret{}, "galera-tls") && len(w.listConfigurations(ctx)(NewGomega(Fail))) == 1
		}).WithTimeout(time.Second).Should(BeTrue())
		w.setFinalizer(ctx, &appsv1.StatefulSet{}, "galera", false)
		gone, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		Expect(w.Landscaper.WaitForDeletion(gone, w.Key("galera"))).To(Succeed())
		Expect(w.hasObject(ctx, &corev1.Service{}, "galera-db")).To(BeFalse())
		Expect(w.hasObject(ctx, &corev1.Secret{}, "galera-tls")).To(BeFalse())
		Expect(w.listConfigurations(ctx)(NewGomega(Fail))).To(BeEmpty())
		Expect(w.Counter.Snapshot().Since(before).OnlyWrites().Sum()).To(Equal(7), "one deletion for each object")
	}, SpecTimeout(8*time.Minute))

	It("creates another ConfigMap when its content changes, and deletes the old one when no Pod uses it any more [Yx4]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start(newGaleraGraph())
		w.begin(ctx, "galera", w.newGaleraConfig(3, "100"))
		w.createCertificates(ctx, "galera")
		w.waitUntilSucceeded(ctx, "galera")
		Expect(w.listConfigurations(ctx)(NewGomega(Fail))).To(HaveLen(1))
		used := w.getMountedConfigMap(ctx)(NewGomega(Fail))

		By("restarting the members, one of which takes longer")
		stuck.set(w.Namespace, true)
		DeferCleanup(stuck.set, w.Namespace, false)
		Expect(w.Landscaper.Update(ctx, w.Key("galera"), newConfig(w.newGaleraConfig(3, "200")))).To(Succeed())
		_, err := w.Landscaper.Trigger(ctx, w.Key("galera"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.getMountedConfigMap(ctx)).WithTimeout(patience).ShouldNot(Equal(used))
		now := w.getMountedConfigMap(ctx)(NewGomega(Fail))
		Eventually(w.getStates(ctx, "galera")).WithTimeout(patience).Should(And(HaveKeyWithValue("database", "Progressing"), HaveKeyWithValue("haproxy", "Blocked")))
		Consistently(w.listConfigurations(ctx)).WithTimeout(time.Second).Should(And(
			HaveLen(2), HaveKeyWithValue(used, ContainSubstring("=100")), HaveKeyWithValue(now, ContainSubstring("=200"))))

		By("waiting until all members use the new ConfigMap")
		stuck.set(w.Namespace, false)
		w.waitUntilSucceeded(ctx, "galera")
		Eventually(w.listConfigurations(ctx)).WithTimeout(patience).Should(And(HaveLen(1), HaveKey(now)))
	}, SpecTimeout(8*time.Minute))
})

// getMountedConfigMap returns a function for Eventually that reads the name of the ConfigMap that the database mounts.
func (w *env) getMountedConfigMap(ctx context.Context) func(Gomega) string {
	return func(g Gomega) string {
		database := &appsv1.StatefulSet{}
		g.Expect(w.Client.Get(ctx, w.Key("galera"), database)).To(Succeed())
		return database.Spec.Template.Spec.Volumes[0].ConfigMap.Name
	}
}
