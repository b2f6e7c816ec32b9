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

// access contains the address, the connection settings and the credentials of a target. All of these values have been
// checked. Every client is created from an access. An access cannot make the deployer run a program, read a file or
// impersonate a user.
type access struct {
	server             string
	tlsServerName      string
	ca                 []byte // without a CA, the root certificates of the system are used
	insecure           bool
	disableCompression bool
	proxy              string
	// isLandscaper is true if the server is the API server of the Landscaper cluster. In this case, the host is not
	// checked, because the address comes from the configuration of the operator.
	isLandscaper bool
	credentials
}

// credentials are the part of an access that may change over time. Never print them.
type credentials struct {
	token     string
	cert, key []byte
}

// newAccess returns the access for a cluster entry and a user entry of a kubeconfig. The fields of both have already
// been checked one by one. newAccess performs the checks that involve several fields.
func newAccess(cluster, user entry) (*access, error) {
	a := &access{
		server:        getText(cluster.fields, "server"),
		tlsServerName: getText(cluster.fields, "tls-server-name"),
		ca:            getData(cluster.fields, "certificate-authority-data"),
		proxy:         getText(cluster.fields, "proxy-url"),
		credentials: credentials{
			token: getText(user.fields, "token"),
			cert:  getData(user.fields, "client-certificate-data"),
			key:   getData(user.fields, "client-key-data"),
		},
	}
	a.insecure, _ = cluster.fields["insecure-skip-tls-verify"].(bool)
	a.disableCompression, _ = cluster.fields["disable-compression"].(bool)
	switch {
	case a.server == "":
		return nil, newConfigError(joinPath(cluster.path, "server"), "is missing")
	case a.insecure && a.ca != nil:
		return nil, newConfigError(joinPath(cluster.path, "insecure-skip-tls-verify"), "contradicts certificate-authority-data")
	case a.ca != nil && !isCA(a.ca):
		return nil, newConfigError(joinPath(cluster.path, "certificate-authority-data"), "contains no PEM certificate")
	case a.token == "" && a.cert == nil && a.key == nil:
		return nil, newConfigError(user.path, "contains no usable credentials: neither token nor client-certificate-data")
	case a.cert == nil != (a.key == nil):
		return nil, newConfigError(user.path, "has only one of client-certificate-data and client-key-data")
	}
	if a.cert != nil {
		if _, err := tls.X509KeyPair(a.cert, a.key); err != nil {
			return nil, newConfigError(user.path, "client-certificate-data and client-key-data are not a PEM certificate with its key")
		}
	}
	return a, nil
}

// newRESTConfig creates the REST config for a target. No other function creates one.
func (a *access) newRESTConfig(p Policy) *rest.Config {
	cfg := &rest.Config{
		Host:        a.server,
		BearerToken: a.token,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: a.insecure, ServerName: a.tlsServerName, CAData: a.ca, CertData: a.cert, KeyData: a.key,
		},
		DisableCompression: a.disableCompression,
		Proxy:              a.newProxyFunc(),
		Dial:               a.newDial(p),
		WarningHandler:     rest.NoWarnings{},
		QPS:                -1,
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &redirectRefuser{next: next} })
	return cfg
}

func (a *access) newDial(p Policy) func(context.Context, string, string) (net.Conn, error) {
	if p.AllowPrivateHosts || a.isLandscaper {
		return netguard.DialAny()
	}
	return netguard.Dial(newConfigError(fieldServer, privateServer))
}

// getPath returns the path in the URL of the server. All API paths begin with it.
func (a *access) getPath() string {
	u, err := url.Parse(a.server)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}

func (a *access) newProxyFunc() func(*http.Request) (*url.URL, error) {
	if a.proxy == "" {
		return http.ProxyFromEnvironment
	}
	proxy, err := url.Parse(a.proxy)
	return func(*http.Request) (*url.URL, error) { return proxy, err }
}

func isCA(pem []byte) bool {
	return x509.NewCertPool().AppendCertsFromPEM(pem)
}

// ErrRedirect is returned if the target responds to a request with a redirect. Following the redirect would send the
// credentials to a server that the target chooses.
var ErrRedirect = errors.New("the server answered with a redirect, which is not followed")

// redirectRefuser is a transport that returns ErrRedirect for each redirect, whatever HTTP client uses it.
type redirectRefuser struct{ next http.RoundTripper }

func (t *redirectRefuser) RoundTrip(req *http.Request) (*http.Response, error) {
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

// WrappedRoundTripper returns the wrapped transport. client-go calls this method.
func (t *redirectRefuser) WrappedRoundTripper() http.RoundTripper { return t.next }
