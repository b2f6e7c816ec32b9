// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("mock-deployer", func() {
	It("runs outside of a cluster with only --kubeconfig, and exits with status 0 on SIGTERM", func(ctx SpecContext) {
		session := run("--kubeconfig=" + kubeconfig)
		ls := newLandscaper(c)
		di, err := ls.WaitUntilFinished(ctx, createAndStart(ctx, ls, "plain", ""))
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Deployer.Name).To(Equal(mock.Name))
		Expect(leader(ctx, c, mock.Name)).NotTo(BeEmpty())
		Eventually(session.Terminate(), patience).Should(gexec.Exit(0))
		Expect(leader(ctx, c, mock.Name)).To(BeEmpty(), "the lease is released")
		Expect(session.Err).NotTo(gbytes.Say("DATA RACE"))
	})

	It("serves its state at /readyz and /metrics", func(ctx SpecContext) {
		metrics, probes := findFreeAddress(), findFreeAddress()
		run("--kubeconfig="+kubeconfig, "--leader-elect=false", "--item-selector=user=metrics",
			"--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes)
		Eventually(get, patience).WithArguments("http://" + probes + "/readyz").Should(Equal("ok"))
		Expect(get("http://" + probes + "/healthz")).To(Equal("ok"))
		ls := newLandscaper(c)
		item := createAndStart(ctx, ls, "metrics", "", func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"user": "metrics"} })
		Expect(ls.WaitUntilFinished(ctx, item)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
		Expect(get("http://" + metrics + "/metrics")).To(ContainSubstring(`deployerkit_`))
	})

	It("rejects a configuration with unknown fields or of another kind, and invalid flags", func() {
		head := "apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1\nkind: Configuration\n"
		for want, args := range map[string][]string{
			`unknown field "identidy"`:                 {"--config=" + writeFile(head+"identidy: me\n")},
			`want mock.deployer.landscaper`:            {"--config=" + writeFile("apiVersion: v1\nkind: Secret\n")},
			`no such file`:                             {"--config=/does/not/exist"},
			`--workers 0: must be positive`:            {"--workers=0"},
			`--item-selector`:                          {"--item-selector=a in b"},
			`want 0 < retry period`:                    {"--leader-election-renew-deadline=1h"},
			`targetSelectors\[0\]`:                     {"--config=" + writeFile(head+"targetSelector: [{labels: [{key: a, operator: about}]}]\n")},
			`host cluster: load kubeconfig`:            {"--kubeconfig=/does/not/exist"},
			`landscaper cluster: load kubeconfig`:      {"--landscaper-kubeconfig=/does/not/exist"},
			`unknown command "now" for "mock-deployer`: {"now"},
		} {
			session := run(append([]string{"--kubeconfig=" + kubeconfig}, args...)...)
			Eventually(session, patience).Should(gexec.Exit(1), "with the arguments %s", args)
			Expect(session.Err).To(gbytes.Say(want), "with the arguments %s", args)
			Expect(strings.Count(string(session.Err.Contents()), "\n")).To(Equal(1), "one line: %s", session.Err.Contents())
		}
	})

	It("needs only the rights of its rbac.yaml", func(ctx SpecContext) {
		user, err := cp.AddUser("system:serviceaccount:default:mock-deployer")
		Expect(err).NotTo(HaveOccurred())
		grantRoles(ctx, mockRBAC, "system:serviceaccount:default:mock-deployer")
		session := run("--kubeconfig="+writeKubeconfig(user), "--leader-election-id=restricted", "--item-selector=user=restricted")

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "restricted-target"}, Data: map[string][]byte{"kubeconfig": []byte("{}")}}
		Expect(c.Create(ctx, secret)).To(Succeed())
		target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "restricted"}}
		target.Spec.Type = "example.com/some"
		target.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: secret.Name}
		Expect(c.Create(ctx, target)).To(Succeed())
		ls := newLandscaper(c)
		restricted := func(di *lsv1alpha1.DeployItem) {
			di.Labels = map[string]string{"user": "restricted"}
			di.Spec.Target = &lsv1alpha1.ObjectReference{Namespace: ns, Name: target.Name}
		}
		item := createAndStart(ctx, ls, "restricted", `,"export":{"a":1}`, restricted)
		Expect(ls.WaitUntilFinished(ctx, item)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
		Expect(ls.Update(ctx, item, `{"export":{"a":2},"nonsense":true}`)).To(Succeed())
		job, err := ls.Trigger(ctx, item)
		Expect(err).NotTo(HaveOccurred())
		Expect(ls.WaitForJob(ctx, item, job)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Failed))
		Eventually(ctx, events).WithArguments(ctx, item.Name).Should(ContainElement(ContainSubstring("nonsense")))
		Expect(ls.Delete(ctx, item)).To(Succeed())
		Eventually(session.Terminate(), patience).Should(gexec.Exit(0))
		Expect(string(session.Err.Contents())).NotTo(ContainSubstring("forbidden"))
	})

	It("ends the job of a killed leader exactly once, in another replica [H-30] [H-34] [C14]", func(ctx SpecContext) {
		election := []string{"--kubeconfig=" + kubeconfig, "--leader-election-id=killed", "--item-selector=user=killed"}
		first := run(election...)
		Eventually(ctx, leader).WithArguments(ctx, c, "killed").WithTimeout(patience).ShouldNot(BeEmpty())
		holder := leader(ctx, c, "killed")
		second := run(election...)
		ls := newLandscaper(c)
		item := createAndStart(ctx, ls, "killed", `,"phase":"Progressing"`, func(di *lsv1alpha1.DeployItem) {
			di.Labels = map[string]string{"user": "killed"}
			di.Spec.Timeout = &lsv1alpha1.Duration{Duration: 12 * time.Second}
		})
		running, err := ls.WaitForPhase(ctx, item, "Progressing")
		Expect(err).NotTo(HaveOccurred())
		Eventually(first.Kill(), patience).Should(gexec.Exit())

		di, err := ls.WaitUntilFinished(ctx, item)
		Expect(err).NotTo(HaveOccurred())
		Expect(leader(ctx, c, "killed")).NotTo(Equal(holder))
		Expect(di.Status.JobIDFinished).To(Equal(running.Status.JobID))
		Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
		Expect(di.Status.LastReconcileTime).To(Equal(running.Status.LastReconcileTime), "the job was resumed, not begun again")
		Expect(di.Status.TransitionTimes.FinishedTime.Sub(di.Status.LastReconcileTime.Time)).To(And(BeNumerically(">=", 9*time.Second), BeNumerically("<=", 12*time.Second+testtime.ScaleTimeout(3*time.Second))),
			"its deadline counts across the takeover")
		Expect(second).NotTo(gexec.Exit())
	})

	It("uses a lease in the host cluster, and processes the items of the Landscaper cluster", func(ctx SpecContext) {
		host := world.StartControlPlane(ctx, controlplane.Options{})
		hostClient := world.NewClient(GinkgoTB(), host.Config)
		run("--kubeconfig="+fileOf(host), "--landscaper-kubeconfig="+kubeconfig, "--leader-election-id=two", "--item-selector=user=two")
		ls := newLandscaper(c)
		item := createAndStart(ctx, ls, "two", "", func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"user": "two"} })
		Expect(ls.WaitUntilFinished(ctx, item)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
		Expect(leader(ctx, hostClient, "two")).NotTo(BeEmpty())
		Expect(leader(ctx, c, "two")).To(BeEmpty())
	})

	It("completes a running reconcile before it stops, and stops within its grace period [decision 11]", func(ctx SpecContext) {
		session := run("--kubeconfig="+kubeconfig, "--leader-election-id=stopped", "--item-selector=user=stopped")
		ls := newLandscaper(c)
		item := createAndStart(ctx, ls, "stopped", `,"phase":"Progressing"`, func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"user": "stopped"} })
		_, err := ls.WaitForPhase(ctx, item, "Progressing")
		Expect(err).NotTo(HaveOccurred())
		session.Signal(syscall.SIGTERM)
		Eventually(session, 15*time.Second).Should(gexec.Exit(0))
		Expect(ls.Get(ctx, item)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Progressing), "it goes on after a restart")
	})
})

// get returns the content of a page, or the text of the error.
func get(url string) string {
	res, err := http.Get(url) //nolint:gosec,noctx // ours
	if err != nil {
		return err.Error()
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err.Error()
	}
	return string(body)
}

// events returns the notes of the events about an item.
func events(ctx SpecContext, name string) ([]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("events.k8s.io/v1")
	list.SetKind("EventList")
	if err := c.List(ctx, list); err != nil {
		return nil, err
	}
	var notes []string
	for _, e := range list.Items {
		if about, _, _ := unstructured.NestedString(e.Object, "regarding", "name"); about == name {
			note, _, _ := unstructured.NestedString(e.Object, "note")
			notes = append(notes, note)
		}
	}
	return notes, nil
}

// grantRoles grants a user the roles in a file. It skips roles whose names are in `but`.
func grantRoles(ctx SpecContext, path, user string, but ...string) {
	GinkgoHelper()
	for _, role := range createRoles(ctx, path) {
		if slices.Contains(but, role.GetName()) {
			continue
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
		if role.GetKind() == "Role" {
			bind(ctx, role.GetNamespace(), ref, user)
			continue
		}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"}, Subjects: newSubjects(user), RoleRef: ref}
		Expect(c.Create(ctx, binding)).To(Succeed())
		waitForRole(ctx, "", ref, user)
	}
}

// bind binds a role to a user in one namespace.
func bind(ctx SpecContext, namespace string, ref rbacv1.RoleRef, user string) {
	GinkgoHelper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "granted-"}, Subjects: newSubjects(user), RoleRef: ref}
	Expect(c.Create(ctx, binding)).To(Succeed())
	waitForRole(ctx, namespace, ref, user)
}

// waitForRole waits until a user has the rights of a role.
func waitForRole(ctx SpecContext, namespace string, ref rbacv1.RoleRef, user string) {
	GinkgoHelper()
	role := &rbacv1.Role{}
	if ref.Kind == "ClusterRole" {
		cluster := &rbacv1.ClusterRole{}
		Expect(c.Get(ctx, client.ObjectKey{Name: ref.Name}, cluster)).To(Succeed())
		role.Rules = cluster.Rules
	} else {
		Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, role)).To(Succeed())
	}
	world.WaitForRights(ctx, c, user, namespace, role.Rules...)
}

func newSubjects(user string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
}

// createRoles creates those roles of a file that do not exist yet.
func createRoles(ctx SpecContext, path string) []*unstructured.Unstructured {
	GinkgoHelper()
	found := readRoles(path)
	for _, role := range found {
		Expect(client.IgnoreAlreadyExists(c.Create(ctx, role.DeepCopy()))).To(Succeed())
	}
	return found
}

// readRoles reads the roles in a file.
func readRoles(path string) []*unstructured.Unstructured {
	GinkgoHelper()
	body, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var found []*unstructured.Unstructured
	for doc := range strings.SplitSeq(string(body), "\n---\n") {
		role := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(doc), role)).To(Succeed())
		if role.GetKind() == "" {
			continue // the document contains only a comment
		}
		found = append(found, role)
	}
	return found
}
