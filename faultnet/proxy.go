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

// Proxy starts a server on the loopback interface that forwards requests to the API server of cfg through the network.
// It returns a config for this server. Use Proxy for deployers that run in another process. [EncodeKubeconfig] converts
// the returned config to the content of a file. The server uses TLS with its own certificate, supports HTTP/1.1 and
// HTTP/2, and stops when the test ends.
//
// The proxy sends every request with the credentials in cfg, so the returned config has no credentials. To test with
// the rights of the deployer's own user, pass a cfg with the credentials of that user.
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
		// The client gets a broken connection, as it would without the proxy.
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

// certificate returns the certificate that all proxies of this process share. Creating a key takes a while, so the
// certificate is created only once. The last certificate in the chain is the CA.
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

// EncodeKubeconfig converts cfg to the content of a kubeconfig file, for another program. The kubeconfig contains the
// server, the CA, the token and the client certificate of cfg, but no references to files, no plugins and no
// transports.
func EncodeKubeconfig(cfg *rest.Config) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken, ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	config.Contexts["context"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "context"
	return clientcmd.Write(*config)
}
