// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// tunnel forwards connections to an API server. While the tunnel is closed, it accepts connections but does not
// respond.
type tunnel struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	open    bool
	conns   []net.Conn
	running sync.WaitGroup
}

// newTunnel returns a tunnel to the control plane of the suite.
func newTunnel(ctx context.Context) *tunnel {
	GinkgoHelper()
	server, err := url.Parse(cp.Config.Host)
	Expect(err).NotTo(HaveOccurred())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	t := &tunnel{listener: listener, to: server.Host}
	t.running.Go(t.serve)
	DeferCleanup(func() {
		Expect(t.listener.Close()).To(Succeed())
		t.drop()
		t.running.Wait()
	})
	return t
}

func (t *tunnel) serve() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			return
		}
		t.mu.Lock()
		t.conns = append(t.conns, conn)
		open := t.open
		t.mu.Unlock()
		if open {
			t.running.Go(func() { t.forward(conn) })
		}
	}
}

// forward copies data in both directions until one of the connections is closed.
func (t *tunnel) forward(conn net.Conn) {
	dialer := net.Dialer{Timeout: patience}
	there, err := dialer.Dial("tcp", t.to)
	if err != nil {
		_ = conn.Close()
		return
	}
	t.mu.Lock()
	t.conns = append(t.conns, there)
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(there, conn)
		_ = there.Close()
	}()
	_, _ = io.Copy(conn, there)
	_ = conn.Close()
	<-done
}

// drop closes all open connections.
func (t *tunnel) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conn := range t.conns {
		_ = conn.Close()
	}
	t.conns = nil
}

// openTunnel opens the tunnel, so that the API server can respond.
func (t *tunnel) openTunnel() {
	t.mu.Lock()
	t.open = true
	t.mu.Unlock()
	t.drop()
}

// createTenantTargets creates n Targets for one API server, each with a different user. The last Target uses the
// tunnel.
func (w *env) createTenantTargets(ctx context.Context, n int, last *tunnel) {
	GinkgoHelper()
	for i := range n {
		user, err := cp.AddUser(fmt.Sprintf("tenant-%d", i), "system:masters")
		Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.Load(cp.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		current := config.Contexts[config.CurrentContext]
		config.AuthInfos[current.AuthInfo] = &clientcmdapi.AuthInfo{ClientCertificateData: user.CertData, ClientKeyData: user.KeyData}
		if i == n-1 {
			config.Clusters[current.Cluster].Server = "https://" + last.listener.Addr().String()
		}
		raw, err := clientcmd.Write(*config)
		Expect(err).NotTo(HaveOccurred())
		w.CreateTarget(ctx, getTenantName(i), raw)
	}
}

func getTenantName(i int) string { return fmt.Sprintf("tenant-%d", i) }

// sumMetric adds up the values of a metric of the deployer over all series in which a label has the given value.
func (w *env) sumMetric(name, label, value string) float64 {
	GinkgoHelper()
	families, err := w.Manager.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, one := range family.Metric {
			for _, pair := range one.Label {
				if pair.GetName() == label && (value == "" || pair.GetValue() == value) {
					sum += one.GetGauge().GetValue() + one.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

const (
	tenantCount    = 10
	itemsPerTenant = 10
)

var _ = Describe("Many targets", func() {
	It("creates one client per target, and delays no item because of a target that does not respond", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		dead := newTunnel(ctx)
		w.createTenantTargets(ctx, tenantCount, dead)
		w.start()

		By("deploying items on all targets that respond")
		alive := []string{}
		for i := range itemsPerTenant {
			for t := range tenantCount - 1 {
				name := fmt.Sprintf("item-%d-%d", t, i)
				alive = append(alive, name)
				w.createOn(ctx, getTenantName(t), name)
			}
		}
		w.waitUntilAllSucceeded(ctx, alive)
		usual := w.runAll(ctx, alive)

		By("deploying items on the target that does not respond")
		late := []string{}
		for i := range itemsPerTenant {
			name := fmt.Sprintf("item-dead-%d", i)
			late = append(late, name)
			w.createOn(ctx, getTenantName(tenantCount-1), name)
		}
		for _, name := range late {
			Eventually(func(g Gomega) {
				di, err := w.Landscaper.Get(ctx, w.Key(name))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(di.Status.LastError).To(HaveValue(HaveField("Message", ContainSubstring("target"))))
			}).WithTimeout(patience).Should(Succeed())
		}
		beside := w.runAll(ctx, alive)
		GinkgoWriter.Printf("%d items: %s; beside a target that does not answer: %s\n", len(alive), usual, beside)
		Expect(beside).To(BeNumerically("<", 2*usual+testtime.ScaleTimeout(2*time.Second)))
		w.UpdateConfigMap(ctx, alive[0], func(cm *corev1.ConfigMap) { cm.Data["key"] = "by hand" })
		w.waitUntilCorrected(ctx, alive[0], "a")

		By("counting one client and one discovery per target")
		Expect(w.sumMetric("deployerkit_target_client_events_total", "event", "created")).To(BeEquivalentTo(tenantCount))
		Expect(w.sumMetric("deployerkit_target_clients", "state", "")).To(BeEquivalentTo(tenantCount))
		Expect(w.sumMetric("deployerkit_target_clients", "state", "up")).To(BeEquivalentTo(tenantCount - 1))
		Expect(w.sumMetric("deployerkit_target_discoveries_total", "result", "ok")).To(BeEquivalentTo(tenantCount - 1))

		By("letting the last target respond")
		dead.openTunnel()
		w.waitUntilAllSucceeded(ctx, late)
		Expect(w.sumMetric("deployerkit_target_client_events_total", "event", "created")).To(BeEquivalentTo(tenantCount))
		Expect(w.sumMetric("deployerkit_target_discoveries_total", "result", "ok")).To(BeEquivalentTo(tenantCount))
	}, SpecTimeout(10*time.Minute))
})

// createOn creates an item for a Target. The item contains one ConfigMap with the name of the item.
func (w *env) createOn(ctx context.Context, target, name string) {
	GinkgoHelper()
	w.Create(ctx, name, config(nil, w.configMap(name, map[string]string{"key": "a"})), func(di *lsv1alpha1.DeployItem) {
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: target}
	})
}

// runAll starts another job of each item, and returns the time until all of these jobs have succeeded.
func (w *env) runAll(ctx context.Context, names []string) time.Duration {
	GinkgoHelper()
	start := time.Now()
	for _, name := range names {
		_, err := w.Landscaper.Trigger(ctx, w.Key(name))
		Expect(err).NotTo(HaveOccurred())
	}
	w.waitUntilAllSucceeded(ctx, names)
	return time.Since(start)
}

// waitUntilAllSucceeded waits until the jobs of all items have succeeded.
func (w *env) waitUntilAllSucceeded(ctx context.Context, names []string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	for _, name := range names {
		di, err := w.Landscaper.WaitUntilFinished(ctx, w.Key(name))
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "%s: %+v", name, di.Status.LastError)
	}
}
