// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/targets"
)

var _ = Describe("Pool of targets", func() {
	It("serves 1000 items on 10 targets with 10 clients and 10 discoveries", func(ctx SpecContext) {
		contents := createContents(ctx, "many", 10)
		p, w := newPool(targets.PoolOptions{})
		clients := map[*targets.Client]bool{}
		var mu sync.Mutex
		each(ctx, 1000, 16, func(i int) error {
			c, err := p.Get(ctx, newResolvedTarget(fmt.Sprintf("many-%d", i%10), contents[i%10]))
			if err != nil {
				return err
			}
			mu.Lock()
			clients[c] = true
			mu.Unlock()
			return c.Create(ctx, configMap(fmt.Sprintf("item-%d", i)))
		})
		Expect(clients).To(HaveLen(10))
		Expect(w.sumRequests(is("/api"))).To(Equal(10))
		Expect(w.sumRequests(is("/apis"))).To(Equal(10))
		Expect(w.sumRequests(isDiscovery)).To(Equal(20), "a discovery is one request to /api and one to /apis")
		Expect(w.sumRequests(is("/api/v1/namespaces/default/configmaps"))).To(Equal(1000))
	}, SpecTimeout(8*time.Minute))

	for name, url := range map[string]func() string{"refuses connections": newClosedPort, "never responds": newSilentPort} {
		suffix, _, _ := strings.Cut(name, " ")
		It("is not slowed down by a target that "+name, func(ctx SpecContext) {
			const items, workers = 400, 8
			contents := createContents(ctx, "beside-"+suffix, 9)
			dead := content(tokenOf(ctx, createAccount(ctx, "dead-"+suffix)), url())
			alone, _ := newPool(targets.PoolOptions{GetTimeout: time.Second})
			together, w := newPool(targets.PoolOptions{GetTimeout: time.Second})
			use := func(p *targets.Pool, i int) error {
				c, err := p.Get(ctx, newResolvedTarget(fmt.Sprintf("beside-%d", i%9), contents[i%9]))
				if err != nil {
					return err
				}
				return client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "none"}, &corev1.ConfigMap{}))
			}
			// The clients connect before the measurement, which therefore does not include the connection. On a busy machine,
			// a connection takes longer than Get waits.
			for i := range contents {
				Eventually(func() error { return errors.Join(use(alone, i), use(together, i)) }).
					WithContext(ctx).WithTimeout(2 * time.Minute).Should(Succeed())
			}
			without := each(ctx, items, workers, func(i int) error { return use(alone, i) })
			var slowest time.Duration
			var mu sync.Mutex
			with := each(ctx, 2*items, workers, func(i int) error {
				if i%2 == 0 {
					return use(together, i/2)
				}
				start := time.Now()
				_, err := together.Get(ctx, newResolvedTarget("dead", dead))
				mu.Lock()
				slowest = max(slowest, time.Since(start))
				mu.Unlock()
				if _, ok := errors.AsType[*targets.UnreachableError](err); !ok {
					return fmt.Errorf("want an UnreachableError, got %w", err)
				}
				return nil
			})
			GinkgoWriter.Printf("%d items alone: %s; beside as many on a dead target: %s, of which the slowest waited %s\n", items, without, with, slowest)
			Expect(slowest).To(BeNumerically("<", testtime.ScaleTimeout(3*time.Second)))
			Expect(with).To(BeNumerically("<", 2*without+testtime.ScaleTimeout(3*time.Second)), "all workers together wait for the dead target once, for a second")
			Expect(w.sumRequests(isDiscovery)).To(BeNumerically("<", 9*2+10))
		}, SpecTimeout(8*time.Minute))
	}

	It("uses new credentials without a new client", func(ctx SpecContext) {
		first, second := createAccount(ctx, "rotated-1"), createAccount(ctx, "rotated-2")
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rotated"},
			StringData: map[string]string{"config": content(tokenOf(ctx, first), "")},
		}
		Expect(admin.Create(ctx, secret)).To(Succeed())
		r := targets.NewResolver(admin, clock.RealClock{}, time.Hour)
		p, w := newPool(targets.PoolOptions{Resolver: r})
		get := func() *targets.Client {
			target := newTarget("rotated", "null")
			target.Spec.SecretRef = &secretRef
			found, err := r.Resolve(ctx, target)
			Expect(err).NotTo(HaveOccurred())
			c, err := p.Get(ctx, found)
			Expect(err).NotTo(HaveOccurred())
			return c
		}
		c := get()
		release, ok := c.Pin()
		Expect(ok).To(BeTrue())
		defer release()
		key := client.ObjectKey{Namespace: namespace, Name: "none"}
		Expect(client.IgnoreNotFound(c.Get(ctx, key, &corev1.ConfigMap{}))).To(Succeed())

		secret.StringData = map[string]string{"config": content(tokenOf(ctx, second), "")}
		Expect(admin.Update(ctx, secret)).To(Succeed())
		Expect(admin.Delete(ctx, first)).To(Succeed()) // deleting the service account makes its tokens invalid
		Eventually(func() bool { return apierrors.IsUnauthorized(c.Get(ctx, key, &corev1.ConfigMap{})) }).
			WithContext(ctx).WithTimeout(30 * time.Second).Should(BeTrue())
		Expect(get()).To(BeIdenticalTo(c), "after the rejected request, the Secret is read again before its cache entry expires")
		Expect(client.IgnoreNotFound(c.Get(ctx, key, &corev1.ConfigMap{}))).To(Succeed())
		Expect(w.sumRequests(is("/api"))).To(Equal(1))
	}, SpecTimeout(5*time.Minute))
})

// createContents creates n service accounts, and returns the content of a Target for each of them.
func createContents(ctx context.Context, prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = content(tokenOf(ctx, createAccount(ctx, fmt.Sprintf("%s-%d", prefix, i))), "")
	}
	return out
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// each calls f with the numbers 0 to n-1 in the given number of goroutines, and returns the elapsed time.
func each(ctx context.Context, n, workers int, f func(int) error) time.Duration {
	start := time.Now()
	next := make(chan int)
	faults := make([][]error, workers)
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					faults[worker] = append(faults[worker], fmt.Errorf("item %d: %w", i, err))
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	ExpectWithOffset(1, slices.Concat(faults...)).To(BeEmpty())
	return time.Since(start)
}

func newClosedPort() string {
	listener := listen()
	Expect(listener.Close()).To(Succeed())
	return "https://" + listener.Addr().String()
}

// newSilentPort returns the address of a server that accepts connections and never responds.
func newSilentPort() string {
	listener := listen()
	var open []io.Closer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open = append(open, conn)
		}
	}()
	DeferCleanup(func() {
		Expect(listener.Close()).To(Succeed())
		<-ended
		for _, conn := range open {
			Expect(conn.Close()).To(Succeed())
		}
	})
	return "https://" + listener.Addr().String()
}

func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	return listener
}
