// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/targets"
)

const manifestRoles = "../../../deployers/manifest/rbac.yaml"

// manifestArgs returns the arguments of a manifest deployer with all features for which its roles grant rights.
func manifestArgs() deployerlib.DeployerArgs {
	return manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true, EnableSelf: true, EnableOIDC: true}})
}

// newManifestConfig returns a configuration with the given objects and the further fields in more.
func newManifestConfig(more map[string]any, objects ...any) map[string]any {
	entries := []any{}
	for _, one := range objects {
		entries = append(entries, map[string]any{"manifest": one})
	}
	out := map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": entries,
	}
	maps.Copy(out, more)
	return out
}

// configMap returns the manifest of a ConfigMap.
func (w *env) configMap(name, value string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": w.Namespace, "name": name}, "data": map[string]any{"k": value}}
}

// newExportConfig returns the part of a configuration that exports the value of a ConfigMap.
func (w *env) newExportConfig(from string) map[string]any {
	ref := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.Namespace, "name": from}
	return map[string]any{"exports": map[string]any{"exports": []any{map[string]any{"key": "k", "jsonPath": "data.k", "fromResource": ref}}}}
}

// value returns a function for Eventually that reads the value of a ConfigMap. The function returns "gone" if the
// ConfigMap does not exist.
func (w *env) value(ctx context.Context, name string) func(Gomega) string {
	return func(g Gomega) string {
		cm := &corev1.ConfigMap{}
		if err := w.Client.Get(ctx, w.Key(name), cm); err != nil {
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			return "gone"
		}
		return cm.Data["k"]
	}
}

// updateValue changes the value of a ConfigMap as a user would.
func (w *env) updateValue(ctx context.Context, name, value string) {
	GinkgoHelper()
	w.merge(ctx, name, fmt.Appendf(nil, `{"data": {"k": %q}}`, value))
}

// merge sends a merge patch for a ConfigMap as a user would.
func (w *env) merge(ctx context.Context, name string, body []byte) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = w.Namespace, name
	Expect(w.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, body), client.FieldOwner("kubectl-edit"))).To(Succeed())
}

var _ = Describe("Rights of the manifest deployer", func() {
	It("the deployer needs all rights of its rbac.yaml in both revisions, and no others", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.elects = true
		rights := []right{}
		for _, r := range readRoles(manifestRoles) {
			w.createRole(ctx, r, w.user)
			rights = append(rights, r.listRights()...)
		}
		inTarget := w.createTargetUser(ctx)
		w.allow(ctx, inTarget, objects("", "configmaps"))
		for revision, rule := range map[contract.Revision]faultnet.Rule{contract.RevisionJobID: newConflictRule(), contract.RevisionAnnotation: newOldServerRule()} {
			w.setRevision(revision)
			w.start(manifestArgs(), rule)
			w.manifestLife(ctx, string(revision))
			w.Manager.Stop()
		}

		By("deploying to targets with tokens")
		w.setRevision(contract.RevisionJobID)
		w.start(manifestArgs())
		w.runWithTokens(ctx)

		Eventually(listUnused(w.user, rights)).WithTimeout(patience).Should(BeEmpty(), "the role grants a right that the deployer does not need")
		Expect(listRefused(w.user)(NewGomega(Fail))).To(BeEmpty())
		Expect(listRefused(inTarget)(NewGomega(Fail))).To(HaveEach(BeElementOf("list configmaps", "watch configmaps", "get namespaces")),
			"in the whole cluster, before it asks for its namespace only, and the identity of the cluster, without which a move is not noticed [F13]")
	}, SpecTimeout(10*time.Minute))

	It("the deployer fails an item if it may not read the Secrets of Targets", func(ctx SpecContext) {
		const gone = "get secrets"
		w := newEnv(ctx)
		w.elects = true
		for _, r := range readRoles(manifestRoles) {
			w.createRole(ctx, r.without(gone), w.user)
		}
		w.allow(ctx, w.createTargetUser(ctx), objects("", "configmaps"))
		w.start(manifestArgs())
		w.create(ctx, "item", "cluster", newManifestConfig(nil, w.configMap("a", "1")))
		Eventually(listRefused(w.user)).WithTimeout(patience).Should(Equal([]string{gone}))
		Eventually(w.lastError(ctx, "item")).WithTimeout(patience).Should(ContainSubstring(`cannot get resource "secrets"`))
	})
})

// manifestLife deploys an item of the manifest deployer, uses all features with it, and deletes it.
func (w *env) manifestLife(ctx context.Context, name string) {
	GinkgoHelper()
	exports := w.newExportConfig("a")
	By(name + ": install")
	w.create(ctx, name, "cluster", newManifestConfig(exports, w.configMap("a", "1"), w.configMap("b", "1")))
	Expect(w.waitForPhase(ctx, name, phases.Succeeded).Status.ExportReference).NotTo(BeNil())

	By("causing drift")
	w.updateValue(ctx, "a", "by hand")
	Eventually(w.value(ctx, "a")).WithTimeout(patience).Should(Equal("1"))

	By("reporting the same reason in each run while the item waits")
	for _, one := range []string{"-foreign", "-later"} {
		Expect(w.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name + one}})).To(Succeed())
	}
	later := newManifestConfig(w.newExportConfig(name+"-later"), w.configMap("a", "1"), w.configMap("b", "1"))
	later["manifests"] = append(later["manifests"].([]any), map[string]any{"manifest": w.configMap(name+"-foreign", "1"), "policy": "fallback"})
	w.update(ctx, name, later)
	Eventually(func(g Gomega) []string {
		// This change triggers another read of the export.
		w.merge(ctx, name+"-later", fmt.Appendf(nil, `{"metadata": {"labels": {"touched": %q}}}`, rand.Text()))
		return w.events(ctx, name)(g)
	}).WithTimeout(patience).WithPolling(200 * time.Millisecond).Should(ContainElement(And(ContainSubstring("leaves it unchanged"), HaveSuffix("repeated:true"))))
	w.updateValue(ctx, name+"-later", "v")
	w.waitForPhase(ctx, name, phases.Succeeded)

	By("changing the value, removing an object, and then removing the export")
	w.update(ctx, name, newManifestConfig(exports, w.configMap("a", "2")))
	w.waitForPhase(ctx, name, phases.Succeeded)
	Expect([]string{w.value(ctx, "a")(NewGomega(Fail)), w.value(ctx, "b")(NewGomega(Fail))}).To(Equal([]string{"2", "gone"}))
	w.update(ctx, name, newManifestConfig(nil, w.configMap("a", "2")))
	Expect(w.waitForPhase(ctx, name, phases.Succeeded).Status.ExportReference).To(BeNil())

	By("causing an error")
	w.update(ctx, name, map[string]any{"nonsense": true})
	w.waitForPhase(ctx, name, phases.Failed)
	Eventually(w.events(ctx, name)).WithTimeout(patience).Should(ContainElement(ContainSubstring("nonsense")))

	By("deleting the item")
	w.update(ctx, name, newManifestConfig(exports, w.configMap("a", "3")))
	w.waitForPhase(ctx, name, phases.Succeeded)
	w.Delete(ctx, name)
	Expect(w.value(ctx, "a")(NewGomega(Fail))).To(Equal("gone"))
}

// runWithTokens deploys an item to a Target for a ServiceAccount of this cluster. It also creates a Target that would
// reveal a token for this cluster, and requires that the deployer rejects this Target.
func (w *env) runWithTokens(ctx context.Context) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = w.Namespace, "robot"
	Expect(w.Client.Create(ctx, account)).To(Succeed())
	w.allow(ctx, "system:serviceaccount:"+w.Namespace+":robot", objects("", "configmaps"))
	w.createTarget(ctx, "self", []byte(`{"selfConfig": {"serviceAccount": {"name": "robot"}}}`))
	w.create(ctx, "self", "self", newManifestConfig(nil, w.configMap("by-token", "1")))
	w.waitForPhase(ctx, "self", phases.Succeeded)

	request := &authenticationv1.TokenRequest{}
	Expect(w.Client.SubResource("token").Create(ctx, account, request)).To(Succeed())
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: request.Status.Token}}
	Expect(w.Client.Create(ctx, review)).To(Succeed())
	audience, err := json.Marshal(review.Status.Audiences)
	Expect(err).NotTo(HaveOccurred())
	w.createTarget(ctx, "oidc", fmt.Appendf(nil, `{"oidcConfig": {"server": "https://far.example.com", "serviceAccount": {"name": "robot"}, "audience": %s}}`, audience))
	w.create(ctx, "oidc", "oidc", newManifestConfig(nil, w.configMap("elsewhere", "1")))
	Eventually(w.lastError(ctx, "oidc")).WithTimeout(patience).Should(ContainSubstring("oidcConfig.audience"))
	w.Delete(ctx, "self")
}
