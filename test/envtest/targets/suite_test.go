// SPDX-License-Identifier: Apache-2.0

// Package targets_test tests the pool of target clients with a real API server.
package targets_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

func TestTargets(t *testing.T) {
	world.Run(t, "targets")
}

const namespace = "default"

var (
	cp    *controlplane.ControlPlane
	admin client.Client
)

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{})
	admin = world.NewClient(GinkgoTB(), cp.Config)
})

// createAccount creates a service account that has all rights for ConfigMaps in the namespace.
func createAccount(ctx context.Context, name string) *corev1.ServiceAccount {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	ExpectWithOffset(1, admin.Create(ctx, sa)).To(Succeed())
	world.GrantRules(ctx, cp.Config, "system:serviceaccount:"+namespace+":"+name, namespace,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}})
	return sa
}

func tokenOf(ctx context.Context, sa *corev1.ServiceAccount, audiences ...string) string {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	ExpectWithOffset(1, admin.SubResource("token").Create(ctx, sa, request)).To(Succeed())
	return request.Status.Token
}

func encodeCA() string { return base64.StdEncoding.EncodeToString(cp.Config.CAData) }

// content returns the content of a Target: a kubeconfig for the given server. If `server` is empty, the kubeconfig is
// for the API server of the suite.
func content(token, server string) string {
	if server == "" {
		server = cp.Config.Host
	}
	kubeconfig := fmt.Sprintf(`{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
"clusters":[{"name":"x","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"x","user":{"token":%q}}]}`, server, encodeCA(), token)
	text, err := json.Marshal(map[string]string{"kubeconfig": kubeconfig})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return string(text)
}

func newTarget(name, content string) *lsv1alpha1.Target {
	return &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer([]byte(content))},
	}
}

func newResolvedTarget(name, content string) *lsv1alpha1.ResolvedTarget {
	return lsv1alpha1.NewResolvedTarget(newTarget(name, content))
}

// requestCounter is a transport that records the requests to targets.
type requestCounter struct {
	mu       sync.Mutex
	requests map[string]int // number of requests by path
}

func (w *requestCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
		w.mu.Lock()
		w.requests[req.URL.Path]++
		w.mu.Unlock()
		return next.RoundTrip(req)
	})
}

func (w *requestCounter) sumRequests(matches func(path string) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := 0
	for path, n := range w.requests {
		if matches(path) {
			total += n
		}
	}
	return total
}

func is(path string) func(string) bool { return func(p string) bool { return p == path } }

func isDiscovery(path string) bool {
	return path == "/api" || path == "/apis" || strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") <= 3 || path == "/api/v1"
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// newPool returns a pool that accepts targets on this machine.
func newPool(o targets.PoolOptions) (*targets.Pool, *requestCounter) {
	w := &requestCounter{requests: map[string]int{}}
	o.Policy.AllowPrivateHosts = true
	o.WrapTransport = w.wrap
	o.Scheme = admin.Scheme()
	if o.GetTimeout == 0 {
		o.GetTimeout = 10 * time.Second
	}
	p := targets.NewPool(o)
	DeferCleanup(p.Close)
	return p, w
}

// newLandscaperClient returns a client and a config for a user. This user has only the rights that docs/targets.md
// lists.
func newLandscaperClient(ctx context.Context, name string, reviews bool) (client.Client, *rest.Config) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}}}
	if reviews {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}})
	}
	world.GrantRules(ctx, cp.Config, name, "", rules...)
	cfg, err := cp.AddUser(name)
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(cfg, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c, cfg
}
