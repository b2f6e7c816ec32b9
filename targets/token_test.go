// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/targets"
)

// fakeLandscaper is a Landscaper cluster that creates tokens.
type fakeLandscaper struct {
	client.Client
	clk *clocktesting.FakePassiveClock

	mu       sync.Mutex
	requests []string
	reviews  int
	goodHere bool  // the tokens are also valid at the Landscaper cluster
	unknown  bool  // the API server that reviews tokens does not know the service account yet
	fails    error // error of the creation of a token
}

func newFakeLandscaper() *fakeLandscaper {
	l := &fakeLandscaper{clk: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	l.Client = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, name string, obj, sub client.Object, _ ...client.SubResourceCreateOption) error {
			request, ok := sub.(*authenticationv1.TokenRequest)
			if !ok || name != "token" {
				return errors.New("unexpected call")
			}
			return l.create(obj, request)
		},
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			review, ok := obj.(*authenticationv1.TokenReview)
			if !ok {
				return errors.New("unexpected call")
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.reviews++
			review.Status.Authenticated = !l.unknown && (l.goodHere || len(review.Spec.Audiences) > 0)
			return nil
		},
	}).Build()
	return l
}

func (l *fakeLandscaper) create(account client.Object, request *authenticationv1.TokenRequest) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != nil {
		return l.fails
	}
	l.requests = append(l.requests, fmt.Sprintf("%s/%s for %v, %d s", account.GetNamespace(), account.GetName(), request.Spec.Audiences, *request.Spec.ExpirationSeconds))
	request.Status.Token = fmt.Sprintf("%s-%d", canary, len(l.requests))
	request.Status.ExpirationTimestamp = metav1.NewTime(l.clk.Now().Add(time.Duration(*request.Spec.ExpirationSeconds) * time.Second))
	return nil
}

func (l *fakeLandscaper) options(p targets.Policy) targets.PoolOptions {
	p.AllowPrivateHosts = true
	return targets.PoolOptions{Policy: p, LandscaperClient: l, Clock: l.clk}
}

func (l *fakeLandscaper) stepClock(d time.Duration) { l.clk.SetTime(l.clk.Now().Add(d)) }

func (l *fakeLandscaper) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (a *fakeAPI) getOIDCConfig(more string) string {
	return fmt.Sprintf(`{"oidcConfig":{"server":%q,"caData":%q,"serviceAccount":{"name":"robot"}%s}}`, a.URL, a.getCA(), more)
}

var oidcPolicy = targets.Policy{EnableOIDC: true}

func TestOIDC(t *testing.T) {
	ls, api := newFakeLandscaper(), newAPI(t, canary+"-1")
	p := newPool(t, ls.options(oidcPolicy))
	target := newResolvedTarget("a", api.getOIDCConfig(`,"audience":["x","y"],"expirationSeconds":1000`))
	c := getClient(t, p, target)
	if len(ls.requests) != 1 || ls.requests[0] != "garden/robot for [x y], 1000 s" || ls.reviews != 2 {
		t.Errorf("requests %q, %d reviews", ls.requests, ls.reviews)
	}
	if getClient(t, p, newResolvedTarget("b", api.getOIDCConfig(`,"audience":["y","x"]`))) != c {
		t.Error("the same account, server and audience, but another client")
	}
	t.Run("creates neither tokens nor clients for repeated calls [H-25]", func(t *testing.T) {
		for range 50 {
			if getClient(t, p, target) != c {
				t.Fatal("another client")
			}
		}
		if len(ls.requests) != 1 || api.getCount("/api") != 1 {
			t.Errorf("%d tokens, %d discoveries, want 1 each", len(ls.requests), api.getCount("/api"))
		}
	})
	elsewhere := newResolvedTarget("c", target.Content)
	elsewhere.Namespace = "elsewhere"
	api.accept(canary+"-1", canary+"-2")
	if getClient(t, p, elsewhere) == c || len(ls.requests) != 2 {
		t.Error("the account of the same name in another namespace is another one")
	}
	t.Run("replaces a token after four fifths of its lifetime", func(t *testing.T) {
		api.accept(canary+"-1", canary+"-3")
		ls.stepClock(799 * time.Second)
		if err := use(t.Context(), c); err != nil || len(ls.requests) != 2 {
			t.Errorf("early: %v, %d requests", err, len(ls.requests))
		}
		ls.stepClock(time.Second)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := use(t.Context(), c); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(ls.requests) != 3 {
			t.Errorf("%d requests, want one more", len(ls.requests))
		}
	})
	t.Run("uses the old token until it expires if no new token can be created", func(t *testing.T) {
		ls.stepClock(900 * time.Second)
		ls.set(func() { ls.fails = errCreate })
		if err := use(t.Context(), c); err != nil {
			t.Error(err)
		}
		ls.stepClock(100 * time.Second)
		if err := use(t.Context(), c); !errors.Is(err, errCreate) {
			t.Errorf("error %v, want the one of the Landscaper", err)
		}
		ls.set(func() { ls.fails = nil })
	})
	t.Run("replaces a token that the target rejected", func(t *testing.T) {
		api.accept(canary + "-5")
		if err := use(t.Context(), c); !apierrors.IsUnauthorized(err) {
			t.Errorf("error %v", err)
		}
		if err := use(t.Context(), c); err != nil {
			t.Error(err)
		}
		api.accept(canary + "-6")
		c.InvalidateCredentials()
		if err := use(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
}

var errCreate = errors.New("boom")

// TestOIDCConfigRejection checks that a token is not sent to the server of a Target if it is also valid at the
// Landscaper cluster.
func TestOIDCConfigRejection(t *testing.T) {
	const audience = `,"audience":["x"]`
	t.Run("refuses a Target unless the operator enables it", func(t *testing.T) {
		ls, api := newFakeLandscaper(), newAPI(t)
		expectConfigError(t, newPool(t, ls.options(targets.Policy{})), newResolvedTarget("a", api.getOIDCConfig(audience)), "oidcConfig")
		expectConfigError(t, newPool(t, targets.PoolOptions{Policy: oidcPolicy}), newResolvedTarget("a", api.getOIDCConfig(audience)), "oidcConfig")
		if len(ls.requests) > 0 || len(api.sentTokens) > 0 {
			t.Error("a token was created or sent")
		}
	})
	t.Run("refuses a token that is valid for the Landscaper cluster", func(t *testing.T) {
		ls, api := newFakeLandscaper(), newAPI(t, canary+"-1")
		ls.goodHere = true
		expectConfigError(t, newPool(t, ls.options(oidcPolicy)), newResolvedTarget("a", api.getOIDCConfig(audience)), "oidcConfig.audience")
		if len(ls.requests) != 1 || len(api.sentTokens) > 0 {
			t.Errorf("%d tokens were created, and the target saw %q", len(ls.requests), api.sentTokens)
		}
	})
	t.Run("refuses a token that the Landscaper cluster cannot review", func(t *testing.T) {
		ls, api := newFakeLandscaper(), newAPI(t, canary+"-1")
		ls.goodHere, ls.unknown = true, true
		_ = expectUnreachable(t, newPool(t, ls.options(oidcPolicy)), "a", api.getOIDCConfig(audience))
		if len(api.sentTokens) > 0 {
			t.Errorf("the target saw %q", api.sentTokens)
		}
	})
	t.Run("refuses an audience of the Landscaper cluster without creating a token", func(t *testing.T) {
		ls, api := newFakeLandscaper(), newAPI(t, canary+"-1")
		policy := targets.Policy{EnableOIDC: true, LandscaperAudiences: []string{"ls"}}
		p := newPool(t, ls.options(policy))
		expectConfigError(t, p, newResolvedTarget("a", api.getOIDCConfig(`,"audience":["x","ls"]`)), "oidcConfig.audience[1]")
		if len(ls.requests) > 0 {
			t.Error("a token was created")
		}
		getClient(t, p, newResolvedTarget("b", api.getOIDCConfig(audience)))
		if ls.reviews > 0 {
			t.Error("a token was reviewed although the audiences are known")
		}
	})
	faults := map[string]string{
		``:                                  "oidcConfig.audience",
		`,"audience":[]`:                    "oidcConfig.audience",
		`,"audience":null`:                  "oidcConfig.audience",
		`,"audience":[""]`:                  "oidcConfig.audience[0]",
		`,"audience":["x",1]`:               "oidcConfig.audience[1]",
		`,"audience":"` + canary + `"`:      "oidcConfig.audience",
		audience + `,"` + canary + `":1`:    "oidcConfig",
		audience + `,"expirationSeconds":1`: "oidcConfig.expirationSeconds",
	}
	for more, field := range faults {
		t.Run("refuses the field "+more, func(t *testing.T) {
			ls, api := newFakeLandscaper(), newAPI(t)
			expectConfigError(t, newPool(t, ls.options(oidcPolicy)), newResolvedTarget("a", api.getOIDCConfig(more)), field)
		})
	}
	wholes := map[string]string{
		`{"oidcConfig":{"server":"http://x","serviceAccount":{"name":"a"},"audience":["x"]}}`:               "oidcConfig.server",
		`{"oidcConfig":{"serviceAccount":{"name":"a"},"audience":["x"]}}`:                                   "oidcConfig.server",
		`{"oidcConfig":{"server":"https://x","audience":["x"]}}`:                                            "oidcConfig.serviceAccount.name",
		`{"oidcConfig":{"server":"https://x","serviceAccount":{"name":"../a"},"audience":["x"]}}`:           "oidcConfig.serviceAccount.name",
		`{"oidcConfig":{"server":"https://x","serviceAccount":{"name":"a"},"audience":["x"],"caData":"x"}}`: "oidcConfig.caData",
		`{"oidcConfig":"` + canary + `"}`:                                                                   "oidcConfig",
	}
	for content, field := range wholes {
		expectConfigError(t, newPool(t, newFakeLandscaper().options(oidcPolicy)), newResolvedTarget("a", content), field)
	}
}

func TestSelfConfig(t *testing.T) {
	ls, api := newFakeLandscaper(), newAPI(t, canary+"-1")
	_, cert, key := newCertificates(t)
	o := ls.options(targets.Policy{EnableSelf: true})
	o.Landscaper = &rest.Config{
		Host: api.URL, BearerToken: "deployer", Impersonate: rest.ImpersonationConfig{UserName: "admin"},
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(decodeBase64(t, api.getCA())), CertData: cert, KeyData: key},
	}
	p := newPool(t, o)
	const content = `{"selfConfig":{"serviceAccount":{"name":"robot"}}}`
	c := getClient(t, p, newResolvedTarget("a", content))
	if err := use(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if len(ls.requests) != 1 || ls.requests[0] != "garden/robot for [], 86400 s" || ls.reviews > 0 {
		t.Errorf("requests %q, %d reviews", ls.requests, ls.reviews)
	}
	t.Run("sends only the token of the service account [H-26]", func(t *testing.T) {
		api.handle = nil
		for _, token := range api.sentTokens {
			if token != canary+"-1" {
				t.Errorf("the server saw %q", token)
			}
		}
		if cfg := c.Config(); len(cfg.CertData)+len(cfg.KeyData) > 0 || cfg.BearerToken != "" || cfg.Impersonate.UserName != "" {
			t.Error("the deployer's own credentials are in the target's configuration")
		}
	})
	t.Run("refuses a Target unless the operator enables it", func(t *testing.T) {
		o.Policy.EnableSelf = false
		expectConfigError(t, newPool(t, o), newResolvedTarget("a", content), "selfConfig")
		expectConfigError(t, newPool(t, targets.PoolOptions{Policy: targets.Policy{EnableSelf: true}}), newResolvedTarget("a", content), "selfConfig")
	})
	t.Run("refuses a Target with an invalid field", func(t *testing.T) {
		for bad, field := range map[string]string{
			`{"selfConfig":{}}`: "selfConfig.serviceAccount.name",
			`{"selfConfig":{"serviceAccount":{"name":"a","namespace":"` + canary + `"}}}`:         "selfConfig.serviceAccount",
			`{"selfConfig":{"serviceAccount":{"name":"a"},"audience":["` + canary + `"]}}`:        "selfConfig",
			`{"selfConfig":{"serviceAccount":{"name":"a"},"expirationSeconds":"` + canary + `"}}`: "selfConfig.expirationSeconds",
		} {
			expectConfigError(t, p, newResolvedTarget("b", bad), field)
		}
	})
}

// TestClientCertificateOfTheDeployer checks that the deployer's own client certificate is not sent to a Target with
// selfConfig.
func TestClientCertificateOfTheDeployer(t *testing.T) {
	t.Run("is not sent to a target [H-26]", func(t *testing.T) {
		ls, api := newFakeLandscaper(), newAPI(t, canary+"-1")
		shown := watchCertificates(api)
		_, cert, key := newCertificates(t)
		o := ls.options(targets.Policy{EnableSelf: true})
		o.Landscaper = &rest.Config{Host: api.URL, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(decodeBase64(t, api.getCA())), CertData: cert, KeyData: key}}
		getClient(t, newPool(t, o), newResolvedTarget("a", `{"selfConfig":{"serviceAccount":{"name":"robot"}}}`))
		if shown() {
			t.Error("the target saw the deployer's client certificate")
		}
		own := fmt.Sprintf("token: %s-1, client-certificate-data: %s, client-key-data: %s", canary, encodeBase64(cert), encodeBase64(key))
		cluster := fmt.Sprintf("server: %q, certificate-authority-data: %s", api.URL, api.getCA())
		if getClient(t, newPool(t, o), newResolvedTarget("b", wrapKubeconfig(t, newKubeconfig(cluster, own, "")))); !shown() {
			t.Error("a target's own client certificate was not shown")
		}
	})
}

// TestFailedTokenCreationSendsNoRequest checks that the target gets no request if no token can be created, and that the
// error names the service account.
func TestFailedTokenCreationSendsNoRequest(t *testing.T) {
	ls, api := newFakeLandscaper(), newAPI(t)
	ls.fails = apierrors.NewNotFound(corev1.Resource("serviceaccounts"), "robot")
	down := expectUnreachable(t, newPool(t, ls.options(oidcPolicy)), "a", api.getOIDCConfig(`,"audience":["x"]`))
	if !apierrors.IsNotFound(down) || !strings.Contains(down.Error(), "garden/robot") || len(api.sentTokens) > 0 {
		t.Errorf("error %v, the target saw %q", down, api.sentTokens)
	}
}
