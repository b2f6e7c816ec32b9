// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// maxResponseBytes is the maximum number of bytes of a response that are read.
const maxResponseBytes = maxReconciles*(maxReconcileBytes+1) + 4<<10

// Client reads the histories that a deployer serves.
type Client struct {
	base *url.URL
	http *http.Client
}

// NewClient returns a client for the server at address (HOST:PORT). The client uses the token in cfg, which must be a
// config for the cluster of the deploy items. The argument ca is the certificate authority for the server's
// certificate. If ca is nil, the certificate is not verified. NewClient returns an error if cfg has no token.
func NewClient(cfg *rest.Config, address string, ca []byte) (*Client, error) {
	if cfg.BearerToken == "" && cfg.BearerTokenFile == "" && cfg.ExecProvider == nil && cfg.AuthProvider == nil {
		return nil, errors.New("read history: the kubeconfig has no token that the deployer could review; give one with --token")
	}
	base, err := url.Parse("https://" + strings.TrimPrefix(address, "https://"))
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("read history: %q is not HOST:PORT", address)
	}
	own := &rest.Config{
		Host: base.Host, BearerToken: cfg.BearerToken, BearerTokenFile: cfg.BearerTokenFile, ExecProvider: cfg.ExecProvider, AuthProvider: cfg.AuthProvider,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca, Insecure: ca == nil}, Timeout: 2 * requestTimeout,
	}
	c, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: base, http: c}, nil
}

// Get returns the last reconciles of an item, oldest first. Every text in the result is short and has no line breaks,
// whatever the server sends.
func (c *Client) Get(ctx context.Context, item types.NamespacedName) (List, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath(pathPrefix, item.Namespace, item.Name).String(), nil)
	if err != nil {
		return List{}, fmt.Errorf("read history: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return List{}, fmt.Errorf("read history: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	switch {
	case err != nil:
		return List{}, fmt.Errorf("read history: %w", err)
	case resp.StatusCode != http.StatusOK:
		return List{}, fmt.Errorf("read history: %s: %s", http.StatusText(resp.StatusCode), shortenText(strings.TrimSpace(string(body))))
	}
	var list List
	if err := json.Unmarshal(body, &list); err != nil {
		return List{}, errors.New("read history: the response is not a history")
	}
	list.clean()
	return list, nil
}

// clean limits the number of reconciles and the length of texts that a server sent.
func (l *List) clean() {
	l.Deployer = Deployer{Name: shortenText(l.Deployer.Name), Identity: shortenText(l.Deployer.Identity), Version: shortenText(l.Deployer.Version), Type: shortenText(l.Deployer.Type)}
	l.Reconciles = l.Reconciles[max(0, len(l.Reconciles)-maxReconciles):]
	for i := range l.Reconciles {
		r := &l.Reconciles[i]
		r.Began = r.Began.Round(time.Microsecond)
		words := []*string{&r.Trigger, &r.Reason, &r.Action, &r.Result}
		for j := range r.Codes {
			words = append(words, &r.Codes[j])
		}
		for j := range r.Phases {
			words = append(words, &r.Phases[j].Name, &r.Phases[j].Verdict)
		}
		for j := range r.Hooks {
			words = append(words, &r.Hooks[j].Type, &r.Hooks[j].Name, &r.Hooks[j].Effect)
		}
		for j := range r.Calls {
			words = append(words, &r.Calls[j].Cluster, &r.Calls[j].Verb, &r.Calls[j].Resource)
		}
		for _, w := range words {
			*w = shortenText(*w)
		}
	}
}
