// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/testtime"
)

// newSlowServerKubeconfig returns the kubeconfig of a server that answers discovery normally. It answers all other
// requests with headers and then sends one byte from time to time.
func newSlowServerKubeconfig() []byte {
	GinkgoHelper()
	transport, err := rest.TransportFor(cp.Config)
	Expect(err).NotTo(HaveOccurred())
	there, err := url.Parse(cp.Config.Host)
	Expect(err).NotTo(HaveOccurred())
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(there)
		r.Out.Header.Del("Authorization")
	}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if path := strings.Trim(req.URL.Path, "/"); path == "api" || path == "apis" || path == "version" {
			proxy.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			_, _ = fmt.Fprint(w, " ")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-ticker.C:
			case <-req.Context().Done():
				return
			}
		}
	}))
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return newKubeconfig("trickling", func(config *clientcmdapi.Config) {
		cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
		cluster.Server, cluster.CertificateAuthorityData, cluster.TLSServerName = server.URL, ca, "example.com"
		asUser(&clientcmdapi.AuthInfo{Token: "of-the-attacker"})(config)
	})
}

var _ = Describe("Fair share of workers", func() {
	It("starts an item of a healthy target within two seconds beside 40 items of targets whose responses never end [F4]", func(ctx SpecContext) {
		evil, good := newEnv(ctx, contract.RevisionJobID), newEnv(ctx, contract.RevisionJobID)
		for i := range 5 {
			name := fmt.Sprintf("evil-%d", i)
			evil.CreateTarget(ctx, name, newSlowServerKubeconfig())
			for j := range 8 {
				evil.Create(ctx, fmt.Sprintf("%s-%d", name, j), config(nil, evil.configMap(fmt.Sprintf("c-%d-%d", i, j), nil)), func(di *lsv1alpha1.DeployItem) {
					di.Spec.Target.Name = name
				})
			}
		}
		evil.start()
		Eventually(func() int { return evil.Counter.Snapshot().Sum() }).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">=", 3))
		for i := range 5 {
			name := fmt.Sprintf("item-%d", i)
			began := time.Now()
			good.Create(ctx, name, config(nil, good.configMap(name, nil)), func(di *lsv1alpha1.DeployItem) { di.Spec.Type = evil.Type })
			Eventually(func(g Gomega) {
				di, err := good.Landscaper.Get(ctx, good.Key(name))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(di.Status.Phase).NotTo(BeEmpty())
			}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
			Expect(time.Since(began)).To(BeNumerically("<", testtime.ScaleTimeout(2*time.Second)))
			Expect(good.Finished(ctx, name).Status.Phase).To(Equal(phases.Succeeded))
		}
	})
})
