// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// Proxy starts a server on the loopback interface that forwards requests to the API server of cfg through the network,
// and returns the access to it, for deployers that are programs of their own. [Kubeconfig] converts the access to the
// content of a file. The server uses TLS with its own certificate, HTTP/1.1 and HTTP/2, and ends with the test.
//
// For every client it uses the rights of cfg: the returned access has no credentials. If the rights of the deployer's
// own user matter, pass a cfg with its credentials.
func (n *Network) Proxy(cfg *rest.Config) *rest.Config {
	n.t.Helper()
	access, err := n.proxy(cfg)
	if err != nil {
		n.t.Fatalf("start the proxy: %v", err)
	}
	return access
}

func (n *Network) proxy(cfg *rest.Config) (*rest.Config, error) {
	upstream, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(n.Wrap(cfg))
	if err != nil {
		return nil, err
	}
	pair, err := certificate()
	if err != nil {
		return nil, err
	}
	handler := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		// The client gets a broken connection, as without the proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	host, err := n.serve(handler, pair)
	if err != nil {
		return nil, err
	}
	access := &rest.Config{Host: "https://" + host, QPS: cfg.QPS, Burst: cfg.Burst}
	access.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[len(pair.Certificate)-1]})
	return access, nil
}

// certificate returns the certificate of all proxies of this process, because creating its key takes a while. The last
// one of its chain is the CA.
var certificate = sync.OnceValues(func() (tls.Certificate, error) {
	chain, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, key)
})

// serve serves on the loopback interface until the test ends, and returns the address.
func (n *Network) serve(handler http.Handler, pair tls.Certificate) (string, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.t.Context()))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		return "", err
	}
	server := &http.Server{
		Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(listener, "", "")
	}()
	n.t.Cleanup(func() {
		cancel()
		_ = server.Close()
		<-done
	})
	return listener.Addr().String(), nil
}

// Kubeconfig returns an access as the content of a kubeconfig file, for programs. It contains the server, its CA, the
// token and the client certificate, but not files, plugins and transports.
func Kubeconfig(cfg *rest.Config) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken, ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	config.Contexts["context"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "context"
	return clientcmd.Write(*config)
}
