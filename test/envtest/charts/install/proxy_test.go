// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/faultnet"
)

// proxy is an HTTP proxy for a single host.
type proxy struct {
	*httptest.Server

	host, server string // clients request `host`; the proxy then connects to `server`
	connections  atomic.Int64
}

// startProxy starts a proxy that forwards connections for the given host to the server with the given URL.
func startProxy(host, server string) *proxy {
	p := &proxy{host: host, server: strings.Trim(strings.TrimPrefix(server, "https://"), "/")}
	p.Server = httptest.NewServer(http.HandlerFunc(p.handleConnect))
	DeferCleanup(p.Close)
	return p
}

// handleConnect handles the method CONNECT.
func (p *proxy) handleConnect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || r.Host != p.host {
		http.Error(w, "unknown host "+r.Host, http.StatusBadGateway)
		return
	}
	upstream, err := net.Dial("tcp", p.server) //nolint:noctx // ends with the client
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	p.connections.Add(1)
	w.WriteHeader(http.StatusOK)
	downstream, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = upstream.Close()
		return
	}
	go copyAndClose(upstream, downstream)
	go copyAndClose(downstream, upstream)
}

// copyAndClose copies data from one connection to the other until one of the connections is closed, and then closes
// both.
func copyAndClose(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// newKubeconfig returns a kubeconfig that contains the address of the control plane and the given token.
func newKubeconfig(token string) []byte {
	GinkgoHelper()
	config := rest.AnonymousClientConfig(cp.Config)
	config.BearerToken = token
	out, err := faultnet.EncodeKubeconfig(config)
	Expect(err).NotTo(HaveOccurred())
	return out
}
