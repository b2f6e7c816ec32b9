// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/targets/internal/token"
)

// clientConfig contains the parameters from which a client is created.
type clientConfig struct {
	access *access
	tokens *token.Source // nil if the field `access` contains the credentials
	// key is the key of the client in the pool. Two Targets with the same key share a client. For a kubeconfig, the key
	// is a hash of the address and the credentials. For a service account, it is a hash of the address and the account.
	// Tokens are not part of the key, because they change.
	key string
	// place identifies the server and the network path to it. If the place of a Target changes, the Target gets another
	// client.
	place  string
	legacy bool
}

type contentSum [sha256.Size]byte

func sumOf(t *lsv1alpha1.ResolvedTarget) contentSum {
	return sha256.Sum256([]byte(string(t.Spec.Type) + "\x00" + t.Content))
}

// clientConfig reads the content of a Target. It sends no request to the target.
func (p *Pool) clientConfig(ctx context.Context, t *lsv1alpha1.ResolvedTarget) (*clientConfig, error) {
	c, err := readContent(t, p.o.Policy)
	if err != nil {
		return nil, err
	}
	switch {
	case c.oidc != nil:
		return p.oidcClientConfig(t.Namespace, c.oidc)
	case c.self != nil:
		return p.selfClientConfig(t.Namespace, c.self)
	case c.secret != nil:
		if c.kubeconfig, err = p.readSecret(ctx, t.Target, c.secret); err != nil {
			return nil, err
		}
	}
	a, err := readKubeconfig(c.kubeconfig, p.o.Policy)
	if err != nil {
		return nil, err
	}
	place := a.place()
	key := hash("kubeconfig", place, a.token, string(a.cert), string(a.key))
	return &clientConfig{access: a, place: place, key: key, legacy: c.secret != nil}, nil
}

func (p *Pool) readSecret(ctx context.Context, t *lsv1alpha1.Target, ref *secretKey) (any, error) {
	if p.o.Resolver == nil {
		return nil, fault("kubeconfig.secretRef", "is not supported by this deployer")
	}
	text, err := p.o.Resolver.value(ctx, t, ref)
	if err != nil {
		return nil, err
	}
	return parse("kubeconfig", text)
}

func (p *Pool) oidcClientConfig(namespace string, c *oidcConfig) (*clientConfig, error) {
	if p.o.LandscaperClient == nil {
		return nil, fault("oidcConfig", "this deployer cannot create tokens")
	}
	a := &access{server: c.server, ca: c.ca}
	m := &clientConfig{access: a, place: a.place()}
	m.tokens = token.New(p.o.LandscaperClient, p.o.Clock, token.Options{
		Account:  types.NamespacedName{Namespace: namespace, Name: c.serviceAccount},
		Audience: c.audience, Expiration: c.expiration, Review: len(p.o.Policy.LandscaperAudiences) == 0,
	})
	audience := slices.Sorted(slices.Values(c.audience))
	m.key = hash(append([]string{"oidc", m.place, namespace, c.serviceAccount}, audience...)...)
	return m, nil
}

// selfClientConfig returns the config for a Target with selfConfig. It uses the address and the CA with which the
// deployer reaches the Landscaper cluster, but not the credentials of the deployer.
func (p *Pool) selfClientConfig(namespace string, c *selfConfig) (*clientConfig, error) {
	if p.o.LandscaperClient == nil || p.o.Landscaper == nil {
		return nil, fault("selfConfig", "this deployer cannot create tokens")
	}
	a, err := p.ownAccess(p.o.Landscaper)
	if err != nil {
		return nil, err
	}
	m := &clientConfig{access: a, place: a.place()}
	m.tokens = token.New(p.o.LandscaperClient, p.o.Clock, token.Options{
		Account: types.NamespacedName{Namespace: namespace, Name: c.serviceAccount}, Expiration: c.expiration,
	})
	m.key = hash("self", m.place, namespace, c.serviceAccount)
	return m, nil
}

func (p *Pool) ownAccess(cfg *rest.Config) (*access, error) {
	public := &rest.Config{Host: cfg.Host, TLSClientConfig: rest.TLSClientConfig{CAFile: cfg.CAFile, CAData: cfg.CAData}}
	if err := rest.LoadTLSFiles(public); err != nil {
		return nil, fmt.Errorf("read the CA of the Landscaper cluster: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read the address of the Landscaper cluster: %w", err)
	}
	return &access{server: host.String(), tlsServerName: cfg.ServerName, ca: public.CAData, insecure: cfg.Insecure && p.o.Policy.AllowInsecureTLS, ours: true}, nil
}

// place identifies the server and the network path to it.
func (a *access) place() string {
	return hash(a.server, a.tlsServerName, string(a.ca), a.proxy, fmt.Sprint(a.insecure, a.disableCompression, a.ours))
}

// hash returns a hash of the parts. It depends on where each part ends, so "ab", "c" and "a", "bc" have different
// hashes.
func hash(parts ...string) string {
	text, err := json.Marshal(parts)
	if err != nil {
		return "" // cannot happen, because strings can always be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
