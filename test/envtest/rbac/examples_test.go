// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/examples/declarative/redis"
	"github.com/deployerkit/deployerkit/examples/galera"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

// local is a policy that accepts targets on this machine.
var local = targets.Policy{AllowPrivateHosts: true}

// newGaleraArgs returns the arguments that the command galera-deployer uses.
func newGaleraArgs() deployerlib.DeployerArgs {
	GinkgoHelper()
	graph, err := galera.BuildGraph()
	Expect(err).NotTo(HaveOccurred())
	return stategraph.Args("galera-deployer", "example.org/galera", graph, stategraph.Options{Targets: local})
}

// example describes a deployer of the examples.
type example struct {
	directory string // the directory that contains its rbac.yaml
	args      func() deployerlib.DeployerArgs
	// target returns the rights of the user in the target.
	target func() []rbacv1.PolicyRule
	// config and another return two different configurations of an item.
	config, another func(ns string) any
}

var _ = DescribeTable("an example deployer needs all rights of its rbac.yaml in both revisions, and no others", func(ctx SpecContext, e example) {
	w := newEnv(ctx)
	rights := []right{}
	for _, r := range readRoles("../../../examples/" + e.directory + "/rbac.yaml") {
		w.createRole(ctx, r, w.user)
		rights = append(rights, r.listRights()...)
	}
	inTarget := w.createTargetUser(ctx)
	w.allow(ctx, inTarget, e.target()...)
	for revision, rule := range map[contract.Revision]faultnet.Rule{contract.RevisionJobID: newConflictRule(), contract.RevisionAnnotation: newOldServerRule()} {
		By(string(revision))
		w.setRevision(revision)
		w.start(e.args(), rule)
		e.runLifecycle(ctx, w, string(revision))
		w.Manager.Stop()
	}
	Eventually(listUnused(w.user, rights)).WithTimeout(patience).Should(BeEmpty(), "the role grants a right that the deployer does not need")
	Expect(listRefused(w.user)(NewGomega(Fail))).To(BeEmpty())
	Expect(listRefused(inTarget)(NewGomega(Fail))).To(HaveEach(MatchRegexp("^(list|watch) |^get namespaces$")),
		"in the whole cluster, before it asks for its namespace only, and the identity of the cluster, without which a move is not noticed [F13]")
},
	Entry("redis", example{
		directory: "declarative",
		args:      func() deployerlib.DeployerArgs { return redis.Args(local) },
		target: func() []rbacv1.PolicyRule {
			return []rbacv1.PolicyRule{objects("", "secrets", "services"), objects("apps", "deployments")}
		},
		config:  func(string) any { return redis.Config{Version: "8.2"} },
		another: func(string) any { return redis.Config{Version: "8.3"} },
	}, SpecTimeout(8*time.Minute)),
	Entry("galera", example{
		directory: "galera",
		args:      newGaleraArgs,
		target:    func() []rbacv1.PolicyRule { return readRules("../../../examples/galera/testdata/rbac.yaml") },
		config:    func(ns string) any { return galera.Config{Namespace: ns, Replicas: 3, Image: "example.com/none:1"} },
		another:   func(ns string) any { return galera.Config{Namespace: ns, Replicas: 5, Image: "example.com/none:1"} },
	}, SpecTimeout(8*time.Minute)),
)

// runLifecycle deploys, changes, corrects and deletes an item.
func (e *example) runLifecycle(ctx context.Context, w *env, name string) {
	GinkgoHelper()
	By("deploying the item, and causing the same drift twice while it waits")
	w.create(ctx, name, "cluster", withKind(e.config(w.Namespace)))
	Eventually(func(g Gomega) []string {
		w.changeSelectors(ctx, g)
		return w.events(ctx, name)(g)
	}).WithTimeout(patience).WithPolling(200 * time.Millisecond).Should(ContainElement(And(ContainSubstring("changed by"), HaveSuffix("repeated:true"))))
	w.waitUntilReady(ctx, name)

	By("changing the configuration")
	w.update(ctx, name, withKind(e.another(w.Namespace)))
	w.waitUntilReady(ctx, name)

	By("causing an error")
	w.update(ctx, name, map[string]any{"nonsense": true})
	w.waitForPhase(ctx, name, phases.Failed)
	Eventually(w.events(ctx, name)).WithTimeout(patience).Should(ContainElement(ContainSubstring("nonsense")))

	By("deleting the item")
	w.update(ctx, name, withKind(e.config(w.Namespace)))
	w.waitUntilReady(ctx, name)
	w.Delete(ctx, name)
}

// withKind adds apiVersion and kind to a configuration, because the schema of deploy items requires them.
func withKind(config any) map[string]any {
	GinkgoHelper()
	raw, err := json.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	out := map[string]any{}
	Expect(json.Unmarshal(raw, &out)).To(Succeed())
	out["apiVersion"], out["kind"] = "example.org/v1", "Example"
	return out
}

// changeSelectors edits the selectors of all Services, each time under another field manager. If the same field manager
// edited a field repeatedly, the deployer would detect a fight and delay its corrections.
func (w *env) changeSelectors(ctx context.Context, g Gomega) {
	list := &corev1.ServiceList{}
	g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
	by := "by-hand-" + strings.ToLower(rand.Text())
	for i := range list.Items {
		body := fmt.Appendf(nil, `{"spec": {"selector": {"app": %q}}}`, by)
		err := w.Client.Patch(ctx, &list.Items[i], client.RawPatch(types.MergePatchType, body), client.FieldOwner(by))
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	}
}

// waitUntilReady acts as the controllers in the target until the item has succeeded.
func (w *env) waitUntilReady(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		w.updateWorkloads(ctx, g)
		di, err := w.Landscaper.Get(ctx, w.Key(name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(di.Status.ObservedGeneration).To(Equal(di.Generation))
		g.Expect(di.Status.JobIDFinished).To(Equal(di.Status.JobID))
		g.Expect(di.Status.Phase).To(Equal(phases.Succeeded), "status: %+v", di.Status)
	}).WithContext(ctx).WithTimeout(patience).WithPolling(100 * time.Millisecond).Should(Succeed())
}

// updateWorkloads marks all workloads as running, and writes the requested certificates.
func (w *env) updateWorkloads(ctx context.Context, g Gomega) {
	deployments, sets, secrets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.SecretList{}
	for _, list := range []client.ObjectList{deployments, sets, secrets} {
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, ReadyReplicas: n, UpdatedReplicas: n, AvailableReplicas: n}
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}
		g.Expect(w.Client.Status().Update(ctx, d)).To(Succeed())
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		n := *s.Spec.Replicas
		s.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: s.Generation, Replicas: n, ReadyReplicas: n, UpdatedReplicas: n, CurrentReplicas: n, AvailableReplicas: n,
			CurrentRevision: "1", UpdateRevision: "1",
		}
		g.Expect(w.Client.Status().Update(ctx, s)).To(Succeed())
	}
	for i := range secrets.Items {
		if s := &secrets.Items[i]; s.Annotations["example.org/issue-for"] != "" && len(s.Data) == 0 {
			s.Data = map[string][]byte{corev1.TLSCertKey: []byte("pem"), corev1.TLSPrivateKeyKey: []byte("pem")}
			g.Expect(w.Client.Update(ctx, s, client.FieldOwner("issuer"))).To(Succeed())
		}
	}
}

// readRules reads rules from a file in the format of Graph.RBAC.
func readRules(file string) []rbacv1.PolicyRule {
	GinkgoHelper()
	body, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	var listed struct{ Rules []rbacv1.PolicyRule }
	Expect(yaml.UnmarshalStrict(body, &listed)).To(Succeed())
	return listed.Rules
}
