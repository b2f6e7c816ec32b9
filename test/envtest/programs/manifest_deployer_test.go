// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"encoding/json"
	"fmt"
	"os"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	manifestRBAC = "../../../deployers/manifest/rbac.yaml"
	tokens       = "deployerkit:manifest-deployer-tokens"
	reviews      = "deployerkit:manifest-deployer-token-reviews"
)

// readAndWrite lists the verbs that the user of a Target needs for the kinds of the manifests.
var readAndWrite = []string{"get", "list", "watch", "create", "patch", "delete"}

var _ = Describe("manifest-deployer", func() {
	It("runs outside of a cluster with the configuration file of Landscaper", func(ctx SpecContext) {
		config := writeFile("apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: Configuration\n" +
			"controller: {workers: 3}\nexport: {defaultTimeout: 1m}\nhpa: {maxReplicas: 2}\ntargetSelector: [{targets: [{name: plain, namespace: default}]}]\n")
		metrics := findFreeAddress()
		session := start(manifestProgram, "--kubeconfig="+kubeconfig, "--config="+config, "--item-selector=user=plain", "--allow-private-hosts",
			"--metrics-bind-address="+metrics)
		createTarget(ctx, "plain", cp.Kubeconfig())
		ls := newLandscaper(c)
		item := createManifestItem(ctx, ls, "plain", `,"updateStrategy":"update"`, configMap(ns, "plain", "a"))
		di, err := ls.WaitUntilFinished(ctx, item)
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
		Expect(di.Status.Deployer.Name).To(Equal(manifest.Name))
		Eventually(get).WithArguments("http://"+metrics+"/metrics").WithTimeout(patience).Should(
			MatchRegexp(`controller_runtime_max_concurrent_reconciles{[^}]*} 103\n`), "3 workers of the configuration file, and 100 for runs on targets that stall")
		Expect(ls.Delete(ctx, item)).To(Succeed())
		Eventually(session.Terminate(), patience).Should(gexec.Exit(0))
		Expect(session.Err).NotTo(gbytes.Say("DATA RACE"))
	})

	It("rejects invalid configurations and flags", func() {
		head := "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: Configuration\n"
		for want, args := range map[string][]string{
			`unknown field "identidy"`:               {"--config=" + writeFile(head+"identidy: me\n")},
			`controller.workers: is -1`:              {"--config=" + writeFile(head+"controller: {workers: -1}\n")},
			`: is v1 "Secret", want`:                 {"--config=" + writeFile("apiVersion: v1\nkind: Secret\n")},
			`read configuration: .* no such file`:    {"--config=/does/not/exist"},
			`default strategy: is "replace"`:         {"--default-strategy=replace"},
			`invalid argument "x" for "--allow-http`: {"--allow-http=x"},
		} {
			session := start(manifestProgram, append([]string{"--kubeconfig=" + kubeconfig}, args...)...)
			Eventually(session, patience).Should(gexec.Exit(1), "with the arguments %s", args)
			Expect(session.Err).To(gbytes.Say(want), "with the arguments %s", args)
		}
	})

	It("needs the rights of its rbac.yaml, and in the target those for its manifests", func(ctx SpecContext) {
		home := namespace(ctx, "restricted-")
		allow(ctx, home, "restricted-target-user", "configmaps", "services")
		createTarget(ctx, "restricted-manifests", newTargetContent("restricted-target-user"))
		user := "system:serviceaccount:default:manifest-deployer"
		access, err := cp.AddUser(user)
		Expect(err).NotTo(HaveOccurred())
		grantRoles(ctx, manifestRBAC, user, tokens, reviews)
		session := start(manifestProgram, "--kubeconfig="+writeKubeconfig(access), "--leader-election-id=restricted-manifests",
			"--item-selector=user=restricted-manifests", "--allow-private-hosts")

		ls := newLandscaper(c)
		exports := fmt.Sprintf(`,"exports":{"exports":[{"key":"k","jsonPath":"data.k","fromResource":{"apiVersion":"v1","kind":"ConfigMap","namespace":%q,"name":"a"}}]}`, home)
		service := fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":%q,"name":"s"},"spec":{"ports":[{"port":80}]}}`, home)
		item := createManifestItem(ctx, ls, "restricted-manifests", exports, configMap(home, "a", "1"), configMap(home, "b", "1"), service)
		di, err := ls.WaitUntilFinished(ctx, item)
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
		Expect(di.Status.ExportReference).NotTo(BeNil())
		Expect(di.Status.Conditions).NotTo(ContainElement(HaveField("Type", manifest.ConditionDriftDetection)), "all objects in the namespace are watched")

		By("correcting drift")
		Expect(c.Patch(ctx, newConfigMap(home, "a"), client.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"by hand"}}`)))).To(Succeed())
		Eventually(ctx, value).WithArguments(ctx, home, "a").WithTimeout(patience).Should(Equal("1"))

		By("changing, pruning, exporting another value, and no longer exporting")
		job := update(ctx, ls, item, exports, configMap(home, "a", "2"), service)
		Expect(ls.WaitForJob(ctx, item, job)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
		Expect([]string{value(ctx, home, "a"), value(ctx, home, "b")}).To(Equal([]string{"2", "gone"}))
		job = update(ctx, ls, item, "", configMap(home, "a", "2"))
		Expect(ls.WaitForJob(ctx, item, job)).To(HaveField("Status", SatisfyAll(
			HaveField("Phase", lsv1alpha1.DeployItemPhases.Succeeded), HaveField("ExportReference", BeNil()))))

		By("reporting errors")
		job = update(ctx, ls, item, `,"nonsense":true`, configMap(home, "a", "2"))
		Expect(ls.WaitForJob(ctx, item, job)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Failed))
		Eventually(ctx, events).WithArguments(ctx, item.Name).WithTimeout(patience).Should(ContainElement(ContainSubstring("nonsense")))

		By("deleting")
		Expect(ls.Delete(ctx, item)).To(Succeed())
		Expect(value(ctx, home, "a")).To(Equal("gone"))
		Eventually(session.Terminate(), patience).Should(gexec.Exit(0))
		Expect(string(session.Err.Contents())).NotTo(Or(ContainSubstring("forbidden"), ContainSubstring("panicked"), ContainSubstring("DATA RACE")))
	})

	It("needs the right to create tokens for self targets, and to review tokens for OIDC targets", func(ctx SpecContext) {
		home := namespace(ctx, "accounts-")
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "robot"}}
		Expect(c.Create(ctx, account)).To(Succeed())
		allow(ctx, home, "system:serviceaccount:default:robot", "configmaps")
		createTarget(ctx, "self", []byte(`{"selfConfig":{"serviceAccount":{"name":"robot"}}}`))
		audience, err := json.Marshal(getAudiences(ctx, account))
		Expect(err).NotTo(HaveOccurred())
		createTarget(ctx, "oidc", fmt.Appendf(nil, `{"oidcConfig":{"server":"https://far.example.com","serviceAccount":{"name":"robot"},"audience":%s}}`, audience))
		user := "system:serviceaccount:default:manifest-deployer-with-tokens"
		access, err := cp.AddUser(user)
		Expect(err).NotTo(HaveOccurred())
		grantRoles(ctx, manifestRBAC, user, tokens, reviews)
		session := start(manifestProgram, "--kubeconfig="+writeKubeconfig(access), "--leader-election-id=accounts", "--item-selector=user in (self,oidc)",
			"--enable-self-targets", "--enable-oidc-targets", "--allow-private-hosts")
		ls := newLandscaper(c)
		self := createManifestItem(ctx, ls, "self", "", configMap(home, "a", "1"))
		Eventually(ctx, lastError).WithArguments(ctx, ls, self).WithTimeout(patience).Should(
			ContainSubstring(`cannot create resource "serviceaccounts/token"`), "only the role for tokens grants this right")

		bind(ctx, ns, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: tokens}, user)
		di, err := ls.WaitUntilFinished(ctx, self)
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
		Expect(value(ctx, home, "a")).To(Equal("1"))

		oidc := createManifestItem(ctx, ls, "oidc", "", configMap(home, "b", "1"))
		Eventually(ctx, lastError).WithArguments(ctx, ls, oidc).WithTimeout(patience).Should(ContainSubstring(`cannot create resource "tokenreviews"`))
		Expect(c.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"}, Subjects: newSubjects(user),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reviews},
		})).To(Succeed())
		Eventually(ctx, lastError).WithArguments(ctx, ls, oidc).WithTimeout(patience).Should(ContainSubstring("oidcConfig.audience"), "the review was allowed")
		Expect(ls.SetAnnotations(ctx, oidc, map[string]string{lsv1alpha1.DeleteWithoutUninstallAnnotation: "true"})).To(Succeed(), "its target cannot be searched for objects")
		Expect(ls.Delete(ctx, self, oidc)).To(Succeed())
		Expect(string(session.Err.Contents())).NotTo(Or(ContainSubstring("panicked"), ContainSubstring("DATA RACE")))
	})
})

// createManifestItem creates an item and starts its first job. The item and its Target have the same name.
func createManifestItem(ctx SpecContext, ls *landscapertest.Landscaper, name, more string, manifests ...string) types.NamespacedName {
	GinkgoHelper()
	di := ls.Item(ns, name+"-item", manifest.Type, manifestConfig(more, manifests))
	di.Labels = map[string]string{"user": name}
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: name}
	Expect(ls.Deploy(ctx, di)).To(Succeed())
	return client.ObjectKeyFromObject(di)
}

// update replaces the configuration of an item, starts a job and returns its ID.
func update(ctx SpecContext, ls *landscapertest.Landscaper, item types.NamespacedName, more string, manifests ...string) string {
	GinkgoHelper()
	Expect(ls.Update(ctx, item, manifestConfig(more, manifests))).To(Succeed())
	job, err := ls.Trigger(ctx, item)
	Expect(err).NotTo(HaveOccurred())
	return job
}

func manifestConfig(more string, manifests []string) string {
	entries := ""
	for i, m := range manifests {
		if i > 0 {
			entries += ","
		}
		entries += `{"manifest":` + m + `}`
	}
	return `{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha2","kind":"ProviderConfiguration","manifests":[` + entries + `]` + more + `}`
}

func configMap(namespace, name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q},"data":{"k":%q}}`, namespace, name, value)
}

func newConfigMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// value returns the value in a ConfigMap that was created from a manifest of the function `configMap`. It returns
// "gone" if the ConfigMap does not exist.
func value(ctx SpecContext, namespace, name string) string {
	GinkgoHelper()
	cm := newConfigMap(namespace, name)
	if err := c.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return "gone"
	}
	return cm.Data["k"]
}

func lastError(ctx SpecContext, ls *landscapertest.Landscaper, item types.NamespacedName) (string, error) {
	di, err := ls.Get(ctx, item)
	if err != nil || di.Status.LastError == nil {
		return "", err
	}
	return di.Status.LastError.Message, nil
}

func namespace(ctx SpecContext, prefix string) string {
	GinkgoHelper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	Expect(c.Create(ctx, made)).To(Succeed())
	return made.Name
}

// createTarget creates a Target and a Secret with its content.
func createTarget(ctx SpecContext, name string, content []byte) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "target-" + name}, Data: map[string][]byte{"kubeconfig": content}}
	Expect(c.Create(ctx, secret)).To(Succeed())
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: secret.Name, Key: "kubeconfig"}
	Expect(c.Create(ctx, target)).To(Succeed())
}

// newTargetContent returns a user's kubeconfig as the configuration of a Target.
func newTargetContent(user string) []byte {
	GinkgoHelper()
	access, err := cp.AddUser(user)
	Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(writeKubeconfig(access))
	Expect(err).NotTo(HaveOccurred())
	return content
}

// allow grants a user rights for some core resources in a namespace.
func allow(ctx SpecContext, namespace, user string, resources ...string) {
	GinkgoHelper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manifests"}}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: readAndWrite}}
	Expect(c.Create(ctx, role)).To(Succeed())
	bind(ctx, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}, user)
}

// getAudiences returns the audiences of the API server.
func getAudiences(ctx SpecContext, account *corev1.ServiceAccount) []string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{}
	Expect(c.SubResource("token").Create(ctx, account, request)).To(Succeed())
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: request.Status.Token}}
	Expect(c.Create(ctx, review)).To(Succeed())
	Expect(review.Status.Authenticated).To(BeTrue())
	return review.Status.Audiences
}
