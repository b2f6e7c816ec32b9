// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// release is a Helm release in its own namespace. The items of the spec have a label with the name of this namespace.
type release struct {
	cluster   helm.Cluster
	namespace string
	name      string
	dir       string // directory of the chart
	manifest  string // manifest of the last revision
}

// newRelease creates the namespace of a release.
func newRelease(ctx context.Context, name, dir string) *release {
	GinkgoHelper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "charts-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	Expect(c.Create(ctx, made)).To(Succeed())
	return &release{cluster: helm.Cluster{Config: cp.Config, Namespace: made.Name}, namespace: made.Name, name: name, dir: dir}
}

// install installs the chart with the given values, and waits until the rights of the release are in force.
func (r *release) install(ctx context.Context, values string) {
	GinkgoHelper()
	out, err := r.cluster.Install(ctx, r.dir, r.name, values)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(client.IgnoreNotFound(r.remove())).To(Or(Succeed(), MatchError(ContainSubstring("not found"))))
	})
	r.manifest = out.Manifest
	r.waitForRights(ctx)
}

// upgrade upgrades the release to the current chart with the given values.
func (r *release) upgrade(ctx context.Context, values string) {
	GinkgoHelper()
	out, err := r.cluster.Upgrade(ctx, r.dir, r.name, values)
	Expect(err).NotTo(HaveOccurred())
	r.manifest = out.Manifest
	r.waitForRights(ctx)
}

func (r *release) remove() error { return r.cluster.Uninstall(r.name) }

// values returns the chart values for a program in this suite, merged with the values in `more`. With these values, the
// program handles only the items of the spec and accepts targets on loopback addresses.
func (r *release) values(more string) string {
	GinkgoHelper()
	own := fmt.Sprintf(`{deployer: {itemSelector: spec=%s}, health: {port: %d}, metrics: {port: %d}}`, r.namespace, findFreePort(), findFreePort())
	if name := filepath.Base(r.dir); strings.Contains(name, "manifest-deployer") || strings.Contains(name, "helm-deployer") {
		own = merge(own, "deployer: {targets: {allowPrivateHosts: true}}")
	}
	return merge(own, more)
}

// merge merges two sets of chart values. The values in b take precedence.
func merge(a, b string) string {
	GinkgoHelper()
	first, err := helm.Values(a)
	Expect(err).NotTo(HaveOccurred())
	second, err := helm.Values(b)
	Expect(err).NotTo(HaveOccurred())
	raw, err := json.Marshal(deep(first, second))
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

func deep(a, b map[string]any) map[string]any {
	for key, value := range b {
		inner, isMap := value.(map[string]any)
		if old, both := a[key].(map[string]any); both && isMap {
			value = deep(old, inner)
		}
		a[key] = value
	}
	return a
}

// deployment returns the Deployment of the release.
func (r *release) deployment(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	list := &appsv1.DeploymentList{}
	Expect(c.List(ctx, list, client.InNamespace(r.namespace))).To(Succeed())
	Expect(list.Items).To(HaveLen(1))
	return &list.Items[0]
}

// waitForRights waits until all roles of the release are in force.
func (r *release) waitForRights(ctx context.Context) {
	GinkgoHelper()
	objects, err := helm.Objects(r.manifest)
	Expect(err).NotTo(HaveOccurred())
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range objects {
		if kind := object.GetKind(); kind == "Role" || kind == "ClusterRole" {
			role := &rbacv1.ClusterRole{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role)).To(Succeed())
			rules[kind+object.GetNamespace()+object.GetName()] = role.Rules
		}
	}
	for _, object := range objects {
		if kind, isBinding := strings.CutSuffix(object.GetKind(), "Binding"); isBinding {
			binding := &rbacv1.RoleBinding{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, binding)).To(Succeed())
			for _, subject := range binding.Subjects {
				user := "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
				world.WaitForRights(ctx, c, user, object.GetNamespace(), rules[kind+object.GetNamespace()+object.GetName()]...)
			}
		}
	}
}

// newConfigForAccount returns a config with a ServiceAccount token, like the config of a Pod with this ServiceAccount.
func newConfigForAccount(ctx context.Context, namespace, account string) *rest.Config {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{}
	made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	Expect(c.SubResource("token").Create(ctx, made, request)).To(Succeed())
	config := rest.AnonymousClientConfig(cp.Config)
	config.BearerToken = request.Status.Token
	return config
}

// call is a request in the format of the audit log.
type call struct {
	Verb        string
	User        struct{ Username string }
	ObjectRef   *struct{ Resource, Namespace, Name, APIGroup, Subresource string }
	Annotations map[string]string
}

// listRefused returns the requests of an account that were rejected because a right is missing.
func listRefused(ctx context.Context, namespace, account string) (out []string) {
	GinkgoHelper()
	for _, call := range listCalls(ctx, namespace, account) {
		if call.Annotations["authorization.k8s.io/decision"] != "allow" {
			out = append(out, fmt.Sprintf("%s %+v", call.Verb, *call.ObjectRef))
		}
	}
	return out
}

// listCalls returns the requests for resources that an account has sent so far. It first sends a request that is
// rejected. This request marks the end of the earlier requests in the audit log.
func listCalls(ctx context.Context, namespace, account string) (out []call) {
	GinkgoHelper()
	user := world.NewClient(GinkgoTB(), newConfigForAccount(ctx, namespace, account))
	mark := namespace + "-mark"
	Expect(user.Get(ctx, client.ObjectKey{Name: mark}, &corev1.Namespace{})).To(MatchError(ContainSubstring("forbidden")))
	Eventually(func(g Gomega) {
		body, err := os.ReadFile(auditLog)
		g.Expect(err).NotTo(HaveOccurred())
		marked := false
		out = nil
		for line := range strings.Lines(string(body)) {
			var one call
			if json.Unmarshal([]byte(line), &one) != nil || one.ObjectRef == nil || one.User.Username != "system:serviceaccount:"+namespace+":"+account {
				continue
			}
			if one.ObjectRef.Name == mark {
				marked = true
			} else {
				out = append(out, one)
			}
		}
		g.Expect(marked).To(BeTrue())
	}).WithTimeout(world.Patience).Should(Succeed())
	return out
}

// findFreePort returns a port on which nothing listens at the moment.
func findFreePort() int {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's
	Expect(err).NotTo(HaveOccurred())
	Expect(l.Close()).To(Succeed())
	return l.Addr().(*net.TCPAddr).Port
}
