// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const (
	lsGroup = "landscaper.gardener.cloud"
	// openMCPConfig is the configuration file that openMCP passes to a manifest deployer.
	openMCPConfig = "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: Configuration\n" +
		"identity: manifest-deployer-%s\nexport: {}\ncontroller: {workers: 30, cacheSyncTimeout: null}\n" +
		// The next line is not from openMCP. It separates the items of the specs.
		"targetSelector: [{targets: [{name: %s, namespace: default}]}]\n"
	// chartConfig is the configuration file that Landscaper's chart v0.152 renders.
	chartConfig = "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: Configuration\n" +
		"identity: %s\nnamespace: ls-system\nhpa: {maxReplicas: 1, averageCpuUtilization: 80, averageMemoryUtilization: 80}\n" +
		"controller: {workers: 30}\ntargetSelector: [{targets: [{name: %s, namespace: default}]}]\n"
)

var (
	everyVerb = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

	// openMCPRights are the rights that openMCP grants to a deployer on the cluster with the deploy items. This cluster
	// is also the host cluster of the deployer.
	openMCPRights = []rbacv1.PolicyRule{
		allowed(lsGroup, everyVerb, "*"),
		allowed("apiextensions.k8s.io", everyVerb, "customresourcedefinitions"),
		allowed("", everyVerb, "secrets", "configmaps", "serviceaccounts", "namespaces", "events"),
		allowed(rbacv1.GroupName, everyVerb, "clusterroles", "clusterrolebindings"),
		allowed("admissionregistration.k8s.io", everyVerb, "validatingwebhookconfigurations"),
		allowed("", []string{"create"}, "serviceaccounts/token"),
	}
	// serviceRights are the rights that landscaper-service grants to a deployer on the cluster with the deploy items.
	serviceRights = []rbacv1.PolicyRule{
		allowed(lsGroup, []string{"*"}, "*"),
		allowed("apiextensions.k8s.io", []string{"*"}, "customresourcedefinitions"),
		allowed("", []string{"create", "get", "watch", "patch", "update"}, "events"),
		allowed("", []string{"*"}, "secrets", "configmaps", "serviceaccounts"),
		allowed("", []string{"create"}, "serviceaccounts/token"),
		allowed("", []string{"get", "list", "watch"}, "namespaces"),
	}
	// managedRights are the rights in the ClusterRole landscaper:deployer of Landscaper v0.20 to v0.27.
	managedRights = []rbacv1.PolicyRule{
		allowed("", []string{"*"}, "secrets"),
		allowed(lsGroup, []string{"get", "watch", "list", "update", "patch"}, "deployitems", "deployitems/status", "targets"),
		allowed(lsGroup, []string{"get", "watch", "list"}, "contexts"),
		allowed("", []string{"create", "get", "watch", "patch", "update"}, "events"),
	}
)

func allowed(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

var _ = Describe("Program that replaces a deployer of Landscaper", func() {
	It("runs with the arguments, the environment and the rights of openMCP [O29] [O25] [O33] [F56] [F57]", func(ctx SpecContext) {
		access := newRestrictedKubeconfig(ctx, "openmcp", openMCPRights...)
		session := startWith(map[string]string{
			"KUBECONFIG": access, "MY_POD_NAME": "manifest-deployer-0", "MY_POD_NAMESPACE": "ls-system-x", "ENABLE_PROFILER": "true",
			"LS_HOST_CLIENT_BURST": "30", "LS_HOST_CLIENT_QPS": "20", "LS_RESOURCE_CLIENT_BURST": "60", "LS_RESOURCE_CLIENT_QPS": "40",
		}, "--config="+writeFile(fmt.Sprintf(openMCPConfig, "x", "openmcp")), "-v=info")
		expectLifecycle(ctx, newLandscaper(c), "openmcp")
		Expect(session.Err).To(gbytes.Say("leader election is forbidden"))
		Expect(stopAndReadLog(session)).NotTo(ContainSubstring("Server rejected event"))
	})

	It("runs with the rights of landscaper-service and the file of its chart [O30] [O24] [F46]", func(ctx SpecContext) {
		host := world.StartControlPlane(ctx, controlplane.Options{})
		user, err := host.AddUser("system:serviceaccount:default:manifest-deployer")
		Expect(err).NotTo(HaveOccurred())
		hostClient := world.NewClient(GinkgoTB(), host.Config)
		for _, role := range readRoles(manifestRBAC) {
			if role.GetKind() == "Role" {
				Expect(hostClient.Create(ctx, role)).To(Succeed())
				Expect(hostClient.Create(ctx, &rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Namespace: role.GetNamespace(), Name: "elects"}, Subjects: newSubjects("system:serviceaccount:default:manifest-deployer"),
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.GetName()},
				})).To(Succeed())
			}
		}
		session := start(manifestProgram, "--kubeconfig="+writeKubeconfig(user), "--landscaper-kubeconfig="+newRestrictedKubeconfig(ctx, "service", serviceRights...),
			"--config="+writeFile(fmt.Sprintf(chartConfig, "service", "service")), "--leader-election-id=service", "--allow-private-hosts", "-v=info")
		expectLifecycle(ctx, newLandscaper(c), "service")
		Expect(leader(ctx, hostClient, "service")).NotTo(BeEmpty())
		Expect(stopAndReadLog(session)).To(SatisfyAll(
			ContainSubstring("hpa.averageCpuUtilization"), ContainSubstring("namespace"),
			Not(ContainSubstring("is forbidden")), Not(ContainSubstring("Server rejected event"))))
	})

	It("runs with the rights of the managed deployers of v0.27, under the annotation revision [O31] [F58]", func(ctx SpecContext) {
		classic := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionAnnotation})
		access := newRestrictedKubeconfig(ctx, "managed", managedRights...)
		session := startWith(map[string]string{"KUBECONFIG": access}, "--config="+writeFile(fmt.Sprintf(chartConfig, "managed", "managed")), "-v=2")
		expectLifecycle(ctx, classic, "managed")
		Expect(stopAndReadLog(session)).To(ContainSubstring("leader election is forbidden"))
	})

	It("sends core events if only these are permitted [O32] [F57]", func(ctx SpecContext) {
		access := newRestrictedKubeconfig(ctx, "core-events", managedRights...)
		session := start(manifestProgram, "--kubeconfig="+access, "--leader-elect=false", "--item-selector=user=core-events", "--allow-private-hosts")
		ls := newLandscaper(c)
		createTarget(ctx, "core-events", cp.Kubeconfig())
		item := createManifestItem(ctx, ls, "core-events", `,"nonsense":true`)
		Eventually(ctx, events).WithArguments(ctx, item.Name).WithTimeout(patience).Should(ContainElement(ContainSubstring("nonsense")))
		Expect(ls.Delete(ctx, item)).To(Succeed())
		Expect(stopAndReadLog(session)).To(SatisfyAll(ContainSubstring("sending core events instead"), Not(ContainSubstring("Server rejected event"))))
	})
})

// expectLifecycle deploys, updates and deletes an item. The item and its Target have the same name.
func expectLifecycle(ctx SpecContext, ls *landscapertest.Landscaper, name string) {
	GinkgoHelper()
	home := namespace(ctx, name+"-")
	createTarget(ctx, name, cp.Kubeconfig())
	exports := fmt.Sprintf(`,"exports":{"exports":[{"key":"k","jsonPath":"data.k","fromResource":{"apiVersion":"v1","kind":"ConfigMap","namespace":%q,"name":"a"}}]}`, home)
	item := createManifestItem(ctx, ls, name, exports, configMap(home, "a", "1"), configMap(home, "b", "1"))
	di, err := ls.WaitUntilFinished(ctx, item)
	Expect(err).NotTo(HaveOccurred())
	Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
	job := update(ctx, ls, item, exports, configMap(home, "a", "2"))
	Expect(ls.WaitForJob(ctx, item, job)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
	Expect([]string{value(ctx, home, "a"), value(ctx, home, "b")}).To(Equal([]string{"2", "gone"}))
	Expect(ls.Delete(ctx, item)).To(Succeed())
	Expect(value(ctx, home, "a")).To(Equal("gone"))
}

// newRestrictedKubeconfig returns the kubeconfig of a user with the given rights in the whole cluster.
func newRestrictedKubeconfig(ctx context.Context, name string, rules ...rbacv1.PolicyRule) string {
	GinkgoHelper()
	user := "system:serviceaccount:default:" + name
	world.GrantRules(ctx, cp.Config, user, "", rules...)
	access, err := cp.AddUser(user)
	Expect(err).NotTo(HaveOccurred())
	return writeKubeconfig(access)
}

// startWith starts the manifest deployer with the given environment and arguments. The only other arguments are flags
// that let several processes run on one machine.
func startWith(env map[string]string, args ...string) *gexec.Session {
	GinkgoHelper()
	cmd := exec.Command(manifestProgram, slices.Concat(args, []string{"--metrics-bind-address=0", "--health-probe-bind-address=0", "--allow-private-hosts"})...) //nolint:gosec // built here
	cmd.Env = []string{"HOME=/nonexistent", "PATH=/nonexistent"}
	for key, value := range env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(patience) })
	return session
}

// stopAndReadLog stops a program and returns its log.
func stopAndReadLog(session *gexec.Session) string {
	GinkgoHelper()
	Eventually(session.Terminate(), patience).Should(gexec.Exit(0))
	log := string(session.Err.Contents())
	Expect(log).NotTo(Or(ContainSubstring("DATA RACE"), ContainSubstring("panicked")))
	return strings.TrimSpace(log)
}
