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
	// serverID identifies the server and the network path to it. If the server of a Target changes, the Target gets
	// another client.
	serverID     string
	hasSecretRef bool
}

type contentHash [sha256.Size]byte

func hashContent(t *lsv1alpha1.ResolvedTarget) contentHash {
	return sha256.Sum256([]byte(string(t.Spec.Type) + "\x00" + t.Content))
}

// newClientConfig reads the content of a Target. It sends no request to the target.
func (p *Pool) newClientConfig(ctx context.Context, t *lsv1alpha1.ResolvedTarget) (*clientConfig, error) {
	c, err := readContent(t, p.options.Policy)
	if err != nil {
		return nil, err
	}
	switch {
	case c.oidc != nil:
		return p.newOIDCClientConfig(t.Namespace, c.oidc)
	case c.self != nil:
		return p.newSelfClientConfig(t.Namespace, c.self)
	case c.secret != nil:
		if c.kubeconfig, err = p.readSecret(ctx, t.Target, c.secret); err != nil {
			return nil, err
		}
	}
	a, err := readKubeconfig(c.kubeconfig, p.options.Policy)
	if err != nil {
		return nil, err
	}
	place := a.getServerID()
	key := hashParts("kubeconfig", place, a.token, string(a.cert), string(a.key))
	return &clientConfig{access: a, serverID: place, key: key, hasSecretRef: c.secret != nil}, nil
}

func (p *Pool) readSecret(ctx context.Context, t *lsv1alpha1.Target, ref *secretKey) (any, error) {
	if p.options.Resolver == nil {
		return nil, newConfigError("kubeconfig.secretRef", "is not supported by this deployer")
	}
	text, err := p.options.Resolver.readValue(ctx, t, ref)
	if err != nil {
		return nil, err
	}
	return parseDocument("kubeconfig", text)
}

func (p *Pool) newOIDCClientConfig(namespace string, c *oidcConfig) (*clientConfig, error) {
	if p.options.LandscaperClient == nil {
		return nil, newConfigError("oidcConfig", "this deployer cannot create tokens")
	}
	a := &access{server: c.server, ca: c.ca}
	m := &clientConfig{access: a, serverID: a.getServerID()}
	m.tokens = token.New(p.options.LandscaperClient, p.options.Clock, token.Options{
		Account:  types.NamespacedName{Namespace: namespace, Name: c.serviceAccount},
		Audience: c.audience, Expiration: c.expiration, Review: len(p.options.Policy.LandscaperAudiences) == 0,
	})
	audience := slices.Sorted(slices.Values(c.audience))
	m.key = hashParts(append([]string{"oidc", m.serverID, namespace, c.serviceAccount}, audience...)...)
	return m, nil
}

// newSelfClientConfig returns the config for a Target with selfConfig. It uses the address and the CA with which the
// deployer reaches the Landscaper cluster, but not the credentials of the deployer.
func (p *Pool) newSelfClientConfig(namespace string, c *selfConfig) (*clientConfig, error) {
	if p.options.LandscaperClient == nil || p.options.Landscaper == nil {
		return nil, newConfigError("selfConfig", "this deployer cannot create tokens")
	}
	a, err := p.newLandscaperAccess(p.options.Landscaper)
	if err != nil {
		return nil, err
	}
	m := &clientConfig{access: a, serverID: a.getServerID()}
	m.tokens = token.New(p.options.LandscaperClient, p.options.Clock, token.Options{
		Account: types.NamespacedName{Namespace: namespace, Name: c.serviceAccount}, Expiration: c.expiration,
	})
	m.key = hashParts("self", m.serverID, namespace, c.serviceAccount)
	return m, nil
}

func (p *Pool) newLandscaperAccess(cfg *rest.Config) (*access, error) {
	public := &rest.Config{Host: cfg.Host, TLSClientConfig: rest.TLSClientConfig{CAFile: cfg.CAFile, CAData: cfg.CAData}}
	if err := rest.LoadTLSFiles(public); err != nil {
		return nil, fmt.Errorf("read the CA of the Landscaper cluster: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read the address of the Landscaper cluster: %w", err)
	}
	return &access{server: host.String(), tlsServerName: cfg.ServerName, ca: public.CAData, insecure: cfg.Insecure && p.options.Policy.AllowInsecureTLS, isLandscaper: true}, nil
}

// getServerID returns a hash that identifies the server and the network path to it.
func (a *access) getServerID() string {
	return hashParts(a.server, a.tlsServerName, string(a.ca), a.proxy, fmt.Sprint(a.insecure, a.disableCompression, a.isLandscaper))
}

// hashParts returns a hash of the parts. It depends on where each part ends, so "ab", "c" and "a", "bc" have different
// hashes.
func hashParts(parts ...string) string {
	text, err := json.Marshal(parts)
	if err != nil {
		return "" // cannot happen, because strings can always be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
