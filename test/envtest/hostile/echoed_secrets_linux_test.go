// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/faultnet/hostile"
)

// echoing is the namespace of the items whose targets quote the requests that they receive.
const echoing = "echoing"

// token is the token that the deployer sends to the targets that quote requests. These targets quote the token, too.
const token = "k4n4ry12.of-the-token.UxYzMqvTsa"

// newEchoServer starts a server that quotes Secrets with the given function. A Secret named "now-…" is quoted when it
// is written. A Secret named "later-…" is quoted when the ConfigMap of the same name is written, when a plan is
// computed, and when the Secret is deleted.
func newEchoServer(quote func(string) string) *hostile.Server {
	GinkgoHelper()
	now := func(r *http.Request) bool { return hostile.IsWrite(r) && strings.Contains(r.URL.Path, "/secrets/now-") }
	later := func(r *http.Request) bool {
		about := strings.Contains(r.URL.Path, "/configmaps/") || r.Method == http.MethodDelete || r.URL.Query().Get("dryRun") != ""
		return hostile.IsWrite(r) && about
	}
	server := hostile.New(
		hostile.When(now, hostile.Echo(http.StatusForbidden, quote)),
		hostile.EchoLater(later, http.StatusForbidden, quote),
	)
	DeferCleanup(server.Close)
	return server
}

// newSecretItem returns an item with a Secret that contains the given value. If the name begins with "later-", the item
// also contains a ConfigMap of the same name.
func newSecretItem(name, target, value string) *lsv1alpha1.DeployItem {
	secret := map[string]any{"manifest": map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": name}, "stringData": map[string]any{"x": value},
	}}
	if strings.HasPrefix(name, "now-") {
		return newItem(echoing, name, target, secret)
	}
	return newItem(echoing, name, target, secret, configMap(name))
}

var _ = Describe("Secrets that targets repeat", func() {
	It("values do not appear in any output, regardless of the quoting [F8]", func(ctx SpecContext) {
		quotings := hostile.QuoteFuncs()
		namespace(ctx, echoing)
		var stored, denied []*lsv1alpha1.DeployItem
		for i, quoting := range slices.Sorted(maps.Keys(quotings)) {
			name := fmt.Sprint("t", i)
			createTarget(ctx, echoing, name, newEchoServer(quotings[quoting]).Kubeconfig(token))
			for j, canary := range slices.Sorted(maps.Keys(canaries)) {
				stored = append(stored, newSecretItem(fmt.Sprintf("later-%s-c%d", name, j), name, canaries[canary]))
				if (i+j)%2 == 0 {
					denied = append(denied, newSecretItem(fmt.Sprintf("now-%s-c%d", name, j), name, canaries[canary]))
				}
			}
		}
		items := slices.Concat(stored, denied)
		metrics := findFreeAddress()
		process := start(manifestDeployer, "--namespace="+echoing, "--zap-log-level=7", "--metrics-bind-address="+metrics)
		forEachItem(4, items, func(di *lsv1alpha1.DeployItem) { Expect(ls.Deploy(ctx, di)).To(Succeed()) })
		secrets := maps.Clone(canaries)
		secrets["token"] = token
		detect := newDetector(secrets)
		for _, quote := range quotings {
			for _, value := range secrets {
				Expect(detect.findLeaks("itself", quote(value))).NotTo(BeEmpty())
			}
		}

		By("denying a write")
		waitUntilDenied(ctx, len(items), func(name string) string {
			if strings.HasPrefix(name, "now-") {
				return "Secret"
			}
			return "ConfigMap"
		})
		found, texts := checkOutputs(ctx, detect, metrics)

		By("planning the item")
		var mu sync.Mutex
		forEachItem(4, selectEveryThird(stored), func(di *lsv1alpha1.DeployItem) {
			out := runPlan(ctx, di)
			mu.Lock()
			defer mu.Unlock()
			texts++
			Expect(out).To(ContainSubstring("denied the request"))
			found = append(found, detect.findLeaks("the plan of "+di.Name, out)...)
		})

		By("denying a deletion")
		leaving := selectEveryThird(stored[1:])
		forEachItem(4, leaving, func(di *lsv1alpha1.DeployItem) {
			Expect(ls.MarkForDeletion(ctx, client.ObjectKeyFromObject(di))).To(Succeed())
			_, err := ls.Trigger(ctx, client.ObjectKeyFromObject(di))
			Expect(client.IgnoreNotFound(err)).To(Succeed())
		})
		waitUntilDenied(ctx, len(items), func(name string) string {
			isLeaving := slices.ContainsFunc(leaving, func(di *lsv1alpha1.DeployItem) bool { return di.Name == name })
			if isLeaving || strings.HasPrefix(name, "now-") {
				return "Secret"
			}
			return "ConfigMap"
		})
		more, count := checkOutputs(ctx, detect, metrics)
		found, texts = append(found, more...), texts+count
		log := string(process.Out.Contents()) + string(process.Err.Contents())
		Expect(process.Err).To(gbytes.Say("denied the request"))
		found = append(found, detect.findLeaks("the log", log)...)
		addFigure(fmt.Sprintf("leaks of %d canaries and a token in %d quotings", len(canaries), len(quotings)), "0",
			"%d (%d items, %d texts, %d KiB of log)", len(found), len(items), texts+1, len(log)>>10)
		Expect(found).To(BeEmpty())
	}, SpecTimeout(15*time.Minute))
})

// selectEveryThird returns every third item, so that the suite takes less time. The number of canaries is 12.
// Therefore, the result still includes every canary and every form of quoting.
func selectEveryThird(items []*lsv1alpha1.DeployItem) (out []*lsv1alpha1.DeployItem) {
	for i := range items {
		if (i+i/12)%3 == 0 {
			out = append(out, items[i])
		}
	}
	return out
}

// forEachItem calls do for all items, with at most atOnce concurrent calls.
func forEachItem(atOnce int, items []*lsv1alpha1.DeployItem, do func(*lsv1alpha1.DeployItem)) {
	GinkgoHelper()
	var workers sync.WaitGroup
	for worker := range atOnce {
		workers.Go(func() {
			defer GinkgoRecover()
			for i := worker; i < len(items); i += atOnce {
				do(items[i])
			}
		})
	}
	workers.Wait()
}

// isDenied reports whether the error of an item shows that the target denied a request for an object of the given kind.
func isDenied(di *lsv1alpha1.DeployItem, kind string) bool {
	return di.Status.LastError != nil && strings.Contains(di.Status.LastError.Message, kind+" default/"+di.Name+": admission webhook denied the request")
}

func listEchoItems(ctx context.Context, g Gomega) []lsv1alpha1.DeployItem {
	list := &lsv1alpha1.DeployItemList{}
	g.Expect(c.List(ctx, list, client.InNamespace(echoing))).To(Succeed())
	return list.Items
}

// waitUntilDenied waits until the given number of items exist and each of them shows an error because its target denied
// a request. The function `kind` returns the kind of the object in that request.
func waitUntilDenied(ctx context.Context, count int, kind func(name string) string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		items, others := listEchoItems(ctx, g), []string{}
		for i := range items {
			if di := &items[i]; !isDenied(di, kind(di.Name)) {
				others = append(others, fmt.Sprintf("%s: %+v", di.Name, di.Status.LastError))
			}
		}
		g.Expect(items).To(HaveLen(count))
		g.Expect(others).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(2 * patience).WithPolling(time.Second).Should(Succeed())
}

// checkOutputs checks all outputs of a deployer except its log. It returns the leaks and the number of texts that it
// checked.
func checkOutputs(ctx context.Context, detect *detector, metrics string) (found []string, texts int) {
	GinkgoHelper()
	items := listEchoItems(ctx, Default)
	for i := range items {
		found = append(found, detect.findLeaksIn("the metadata of "+items[i].Name, items[i].ObjectMeta)...)
		found = append(found, detect.findLeaksIn("the status of "+items[i].Name, items[i].Status)...)
	}
	events, old := &eventsv1.EventList{}, &corev1.EventList{}
	Expect(c.List(ctx, events, client.InNamespace(echoing))).To(Succeed())
	Expect(c.List(ctx, old, client.InNamespace(echoing))).To(Succeed())
	Expect(events.Items).NotTo(BeEmpty())
	found = append(found, detect.findLeaksIn("an event", events.Items)...)
	found = append(found, detect.findLeaksIn("an event", old.Items)...)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metrics+"/metrics", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(body)).To(ContainSubstring("deployerkit_"))
	found = append(found, detect.findLeaks("the metrics", string(body))...)
	return found, 2*len(items) + len(events.Items) + len(old.Items) + 1
}

// runPlan returns the output of `deployerkit plan` for an item.
func runPlan(ctx context.Context, di *lsv1alpha1.DeployItem) string {
	out := &strings.Builder{}
	cmd := plan.Command()
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.SetArgs([]string{di.Name, "-n", di.Namespace, "--kubeconfig=" + kubeconfig, "--allow-private-hosts"})
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(out, err)
	}
	return out.String()
}
