// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/targets/internal/netguard"
)

// access describes how to reach a target, after all checks. Clients are made only from an access. Nothing in it can
// refer to a program, a file or another identity.
type access struct {
	server             string
	tlsServerName      string
	ca                 []byte // if it is empty, the root certificates of the system are used
	insecure           bool
	disableCompression bool
	proxy              string
	// ours is set if the server is the operator's own. Its host is not checked.
	ours bool
	credentials
}

// credentials are the part of an access that may change over time. Never print them.
type credentials struct {
	token     string
	cert, key []byte
}

// newAccess reads what passed the checks of clusterFields and userFields, and performs the checks that involve several
// fields.
func newAccess(cluster, user entry) (*access, error) {
	a := &access{
		server:        text(cluster.fields, "server"),
		tlsServerName: text(cluster.fields, "tls-server-name"),
		ca:            data(cluster.fields, "certificate-authority-data"),
		proxy:         text(cluster.fields, "proxy-url"),
		credentials: credentials{
			token: text(user.fields, "token"),
			cert:  data(user.fields, "client-certificate-data"),
			key:   data(user.fields, "client-key-data"),
		},
	}
	a.insecure, _ = cluster.fields["insecure-skip-tls-verify"].(bool)
	a.disableCompression, _ = cluster.fields["disable-compression"].(bool)
	switch {
	case a.server == "":
		return nil, fault(join(cluster.path, "server"), "is missing")
	case a.insecure && a.ca != nil:
		return nil, fault(join(cluster.path, "insecure-skip-tls-verify"), "contradicts certificate-authority-data")
	case a.ca != nil && !isCA(a.ca):
		return nil, fault(join(cluster.path, "certificate-authority-data"), "holds no PEM certificate")
	case a.token == "" && a.cert == nil && a.key == nil:
		return nil, fault(user.path, "holds no credentials that can be used: neither token nor client-certificate-data")
	case a.cert == nil != (a.key == nil):
		return nil, fault(user.path, "has only one of client-certificate-data and client-key-data")
	}
	if a.cert != nil {
		if _, err := tls.X509KeyPair(a.cert, a.key); err != nil {
			return nil, fault(user.path, "client-certificate-data and client-key-data are not a PEM certificate with its key")
		}
	}
	return a, nil
}

// config creates the REST config for a target. Every REST config for a target is created here.
func (a *access) config(p Policy) *rest.Config {
	cfg := &rest.Config{
		Host:        a.server,
		BearerToken: a.token,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: a.insecure, ServerName: a.tlsServerName, CAData: a.ca, CertData: a.cert, KeyData: a.key,
		},
		DisableCompression: a.disableCompression,
		Proxy:              a.proxyFunc(),
		Dial:               a.dial(p),
		WarningHandler:     rest.NoWarnings{},
		QPS:                -1,
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &noRedirects{next: next} })
	return cfg
}

func (a *access) dial(p Policy) func(context.Context, string, string) (net.Conn, error) {
	if p.AllowPrivateHosts || a.ours {
		return netguard.DialAny()
	}
	return netguard.Dial(fault(fieldServer, privateServer))
}

// path returns the path of the server, which precedes the paths of the API.
func (a *access) path() string {
	u, err := url.Parse(a.server)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}

func (a *access) proxyFunc() func(*http.Request) (*url.URL, error) {
	if a.proxy == "" {
		return http.ProxyFromEnvironment
	}
	proxy, err := url.Parse(a.proxy)
	return func(*http.Request) (*url.URL, error) { return proxy, err }
}

func isCA(pem []byte) bool {
	return x509.NewCertPool().AppendCertsFromPEM(pem)
}

// ErrRedirect is the error of a request to which the target responded with a redirect. Following it would send the
// credentials to a server that the target chooses.
var ErrRedirect = errors.New("the server answered with a redirect, which is not followed")

// noRedirects rejects redirects for every HTTP client that uses it.
type noRedirects struct{ next http.RoundTripper }

func (t *noRedirects) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return nil, errors.Join(ErrRedirect, resp.Body.Close())
	}
	return resp, nil
}

// WrappedRoundTripper returns the wrapped transport. client-go uses it.
func (t *noRedirects) WrappedRoundTripper() http.RoundTripper { return t.next }
