// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/targets/internal/limits"
	"github.com/deployerkit/deployerkit/targets/internal/token"
)

// credentialLink contains one set of credentials and the connections that were made with these credentials. A rotation
// creates a new link, so that no request uses a connection that was authenticated with an old certificate.
type credentialLink struct {
	transport  *http.Transport
	fixedToken string        // a bearer token that does not change; empty if `tokens` is set or a client certificate is used
	tokens     *token.Source // nil if the credentials do not change
	// idle makes the transport forget its connections some time after the last request. Otherwise, net/http keeps the
	// buffers of an HTTP/2 connection that was closed until the next request to its host.
	idle *time.Timer
}

// maxFrameSize is the maximum size of the HTTP/2 frames of a target, which is the smallest that the protocol allows. Each
// connection keeps a buffer of the size of the largest frame, and servers send frames of up to a megabyte otherwise.
const maxFrameSize = 16 << 10

// idleConnTimeout is how long a connection without requests stays open.
const idleConnTimeout = 90 * time.Second

// newLink creates a link. cfg is the REST config that access.config returned. The link has its own transport, because
// client-go never releases the transports that it creates.
func newLink(cfg *rest.Config, tokens *token.Source) (*credentialLink, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.ServerName, InsecureSkipVerify: cfg.Insecure}
	if len(cfg.CAData) > 0 {
		conf.RootCAs = x509.NewCertPool()
		conf.RootCAs.AppendCertsFromPEM(cfg.CAData)
	}
	if len(cfg.CertData) > 0 {
		pair, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData)
		if err != nil {
			return nil, newConfigError("kubeconfig", "has a client certificate that cannot be used")
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{
		Proxy: cfg.Proxy, DialContext: cfg.Dial, TLSClientConfig: conf, DisableCompression: cfg.DisableCompression,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: idleConnTimeout,
		HTTP2: &http.HTTP2Config{MaxReadFrameSize: maxFrameSize},
	})
	l := newLinkWithTransport(transport)
	l.fixedToken, l.tokens = cfg.BearerToken, tokens
	return l, nil
}

// newLinkWithTransport returns a link without credentials.
func newLinkWithTransport(transport *http.Transport) *credentialLink {
	return &credentialLink{transport: transport, idle: time.AfterFunc(idleConnTimeout, transport.CloseIdleConnections)}
}

func (l *credentialLink) getToken(ctx context.Context) (string, error) {
	if l.tokens == nil {
		return l.fixedToken, nil
	}
	created, err := l.tokens.GetToken(ctx)
	if errors.Is(err, token.ErrAccepted) {
		return "", newConfigError("oidcConfig.audience", "is an audience of Landscaper's API server, so the token would also be valid there")
	}
	return created, err
}

// tokenTransport is a transport that adds a token to requests, and removes the token from responses, because client-go
// may log headers, and error responses may quote the request. The token may be empty.
type tokenTransport struct {
	next  http.RoundTripper
	token string
}

func (a *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	for _, values := range resp.Header {
		for i := range values {
			values[i] = redactToken(a.token, values[i])
		}
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, limits.MaxErrorSize))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(redactResponse(a.token, text)))
	return resp, nil
}
