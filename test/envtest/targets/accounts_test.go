// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/targets"
)

var secretRef = lsv1alpha1.LocalSecretReference{Name: "rotated", Key: "config"}

var _ = Describe("Targets with service accounts", func() {
	It("a self target connects to the cluster of Landscaper as the service account [H-26]", func(ctx SpecContext) {
		createAccount(ctx, "robot")
		c, cfg := newLandscaperClient(ctx, "self-deployer", false)
		p, _ := newPool(targets.PoolOptions{Policy: targets.Policy{EnableSelf: true}, LandscaperClient: c, Landscaper: cfg})
		got, err := p.Get(ctx, newResolvedTarget("self", `{"selfConfig":{"serviceAccount":{"name":"robot"},"expirationSeconds":600}}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Create(ctx, configMap("by-robot"))).To(Succeed())
		review := &authenticationv1.SelfSubjectReview{}
		Expect(got.Create(ctx, review)).To(Succeed())
		Expect(review.Status.UserInfo.Username).To(Equal("system:serviceaccount:default:robot"))
		Expect(apierrors.IsForbidden(got.List(ctx, &corev1.SecretList{}))).To(BeTrue())
	}, SpecTimeout(5*time.Minute))

	It("a self target without its service account causes an error that names the account", func(ctx SpecContext) {
		c, cfg := newLandscaperClient(ctx, "missing-deployer", false)
		p, _ := newPool(targets.PoolOptions{Policy: targets.Policy{EnableSelf: true}, LandscaperClient: c, Landscaper: cfg})
		_, err := p.Get(ctx, newResolvedTarget("missing", `{"selfConfig":{"serviceAccount":{"name":"absent"}}}`))
		Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		Expect(err).To(MatchError(ContainSubstring("default/absent")))
	}, SpecTimeout(5*time.Minute))

	Describe("OIDC", func() {
		var seen *tokens
		BeforeEach(func() { seen = newTokens() })

		It("the client sends a token for the configured audience", func(ctx SpecContext) {
			createAccount(ctx, "oidc-robot")
			c, _ := newLandscaperClient(ctx, "oidc-deployer", true)
			p, _ := newPool(targets.PoolOptions{Policy: targets.Policy{EnableOIDC: true}, LandscaperClient: c})
			_, err := p.Get(ctx, newResolvedTarget("oidc", seen.config("oidc-robot", "far-away")))
			Expect(err).To(HaveOccurred(), "the server answers nothing useful")
			Expect(seen.listAudiences()).To(HaveEach(ConsistOf("far-away")))
			Expect(seen.listAudiences()).NotTo(BeEmpty())
			By("reviewing the token in the cluster of Landscaper, which rejects it")
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: seen.all()[0]}}
			Expect(admin.Create(ctx, review)).To(Succeed())
			Expect(review.Status.Authenticated).To(BeFalse())
		}, SpecTimeout(5*time.Minute))

		It("the client sends no token that the cluster of Landscaper accepts", func(ctx SpecContext) {
			sa := createAccount(ctx, "deputy")
			own := parseAudiences(tokenOf(ctx, sa))
			Expect(own).NotTo(BeEmpty())
			c, _ := newLandscaperClient(ctx, "deputy-deployer", true)
			p, _ := newPool(targets.PoolOptions{Policy: targets.Policy{EnableOIDC: true}, LandscaperClient: c})
			for i, audiences := range [][]string{own, append([]string{"far-away"}, own...)} {
				_, err := p.Get(ctx, newResolvedTarget(fmt.Sprintf("deputy-%d", i), seen.config("deputy", audiences...)))
				fault, ok := errors.AsType[*targets.ConfigError](err)
				Expect(ok).To(BeTrue(), "the error is %v", err)
				Expect(fault.Field).To(Equal("oidcConfig.audience"))
			}
			Expect(seen.all()).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))

		It("the client sends no token if it cannot check the audiences", func(ctx SpecContext) {
			createAccount(ctx, "unknown")
			c, _ := newLandscaperClient(ctx, "unknown-deployer", false)
			p, _ := newPool(targets.PoolOptions{Policy: targets.Policy{EnableOIDC: true}, LandscaperClient: c})
			_, err := p.Get(ctx, newResolvedTarget("unknown", seen.config("unknown", "far-away")))
			Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
			Expect(seen.all()).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))
	})

	It("the client discovers all kinds with one discovery", func(ctx SpecContext) {
		p, w := newPool(targets.PoolOptions{})
		c, err := p.Get(ctx, newResolvedTarget("kinds", content(tokenOf(ctx, createAccount(ctx, "kinds")), "")))
		Expect(err).NotTo(HaveOccurred())
		known, err := c.RESTMapper().RESTMapping(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem").GroupKind(), "v1alpha1")
		Expect(err).NotTo(HaveOccurred())
		Expect(known.Resource.Resource).To(Equal("deployitems"))
		Expect(w.sumRequests(isDiscovery)).To(Equal(2))
		Expect(client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "none"}, &corev1.ConfigMap{}))).To(Succeed())
	}, SpecTimeout(5*time.Minute))
})

// tokens is a server outside of the cluster. It records the tokens that it receives.
type tokens struct {
	server *httptest.Server
	mu     sync.Mutex
	got    []string
}

func newTokens() *tokens {
	s := &tokens{}
	s.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got = append(s.got, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		w.WriteHeader(http.StatusForbidden)
	}))
	DeferCleanup(s.server.Close)
	return s
}

func (s *tokens) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.got...)
}

func (s *tokens) listAudiences() [][]string {
	var out [][]string
	for _, token := range s.all() {
		out = append(out, parseAudiences(token))
	}
	return out
}

func (s *tokens) config(account string, audiences ...string) string {
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	list, err := json.Marshal(audiences)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf(`{"oidcConfig":{"server":%q,"caData":%q,"serviceAccount":{"name":%q},"audience":%s}}`,
		s.server.URL, base64.StdEncoding.EncodeToString(cert), account, list)
}

// parseAudiences returns the audiences in a token. It does not verify the token.
func parseAudiences(token string) []string {
	parts := strings.Split(token, ".")
	ExpectWithOffset(1, parts).To(HaveLen(3))
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	var out struct {
		Audience []string `json:"aud"`
	}
	ExpectWithOffset(1, json.Unmarshal(claims, &out)).To(Succeed())
	return out.Audience
}
