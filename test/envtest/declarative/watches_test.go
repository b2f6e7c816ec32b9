// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/declarative"
)

// watchCounter counts the lists and watches of each resource. A watch that begins with a list of all objects counts
// twice: as a list and as a watch.
type watchCounter struct {
	mu             sync.Mutex
	lists, watches map[string]int
}

// wrap returns a transport that counts its requests.
func (c *watchCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		c.addRequest(req)
		return next.RoundTrip(req)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (c *watchCounter) addRequest(req *http.Request) {
	query := req.URL.Query()
	// a list with limit 1 is sent only to determine the current resource version
	if req.Method != http.MethodGet || query.Get("labelSelector") == "" || query.Get("limit") == "1" {
		return
	}
	resource := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	watch := query.Get("watch") != ""
	c.mu.Lock()
	defer c.mu.Unlock()
	if watch {
		c.watches[resource]++
	}
	if !watch || query.Get("sendInitialEvents") == "true" {
		c.lists[resource]++
	}
}

// resetCounts returns the counts since the last call.
func (c *watchCounter) resetCounts() (lists, watches map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lists, watches = c.lists, c.watches
	c.lists, c.watches = map[string]int{}, map[string]int{}
	return lists, watches
}

var _ = Describe("Watches of a declarative deployer", func() {
	It("one list and one watch per kind provide complete children and detect drift [F26]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind, secretKind)
		counter := &watchCounter{}
		counter.resetCounts()
		w.options.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return counter.wrap(w.Counter.Transport(next)) }
		use := func(value string) {
			w.UpdateConfigMap(ctx, "a", func(cm *corev1.ConfigMap) { cm.Data["key"], cm.Data["seen"] = "by hand", value })
			Eventually(w.Data(ctx, "a")).WithTimeout(patience).Should(HaveField("Data", data{"key": "1", "seen": value}))
			Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("seen", HaveKeyWithValue("a", value)))
			lists, watches := counter.resetCounts()
			once := map[string]int{"configmaps": 1, "secrets": 1}
			Expect(lists).To(Equal(once), "lists")
			Expect(watches).To(Equal(once), "watches")
		}

		By("deploying a new item")
		w.start(declarative.HandlerFunc(handleWithCounts))
		w.CreateAndRun(ctx, "item", config(two))
		w.CreateAndRun(ctx, "other", config(map[string]map[string]string{"c": {"key": "1"}}))
		use("one")

		By("restarting the deployer")
		w.Manager.Stop()
		counter.resetCounts()
		w.start(declarative.HandlerFunc(handleWithCounts))
		use("two")
	}, SpecTimeout(5*time.Minute))
})
