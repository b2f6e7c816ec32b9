// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
)

const (
	// hostileItems is the number of items on each hostile target. healthyItems is the number of items on the healthy
	// target.
	hostileItems, healthyItems = 5, 20
	// busyItems is the number of items in the busy namespace. They use their own healthy target.
	busyItems = 2000
	// mostMemory is the limit of the peak memory of the process.
	mostMemory = 400 << 20
	// mostWait is the maximum difference between the waits of an item on a healthy target and its twin.
	mostWait = 2 * time.Second
	// mostRequests is the maximum number of requests per minute that a target may receive for one watch.
	mostRequests = 100
)

// newBehaviours returns the hostile targets. Each of them attacks the deployer in a different way.
func newBehaviours() map[string]hostile.Behaviour {
	objects := hostile.Not(hostile.IsDiscovery)
	when := hostile.When
	return map[string]hostile.Behaviour{
		"huge":              when(objects, hostile.LargeObject(120<<20)),
		"huge-zipped":       when(objects, hostile.Gzip(), hostile.LargeObject(120<<20)),
		"large-zipped":      when(objects, hostile.Gzip(), hostile.LargeObject(7<<20)),
		"huge-lists":        when(hostile.IsList, hostile.LargeObject(120<<20)),
		"huge-kinds":        when(hostile.IsDiscovery, hostile.LargeObject(120<<20)),
		"many-values":       when(objects, hostile.ManyValues(2_000_000)),
		"deep":              when(objects, hostile.DeepObject(1_000_000)),
		"endless-pages":     when(hostile.IsList, hostile.EndlessPages(100, 10_000)),
		"trickle":           when(objects, hostile.SendSlowly(time.Second)),
		"trickle-large":     when(objects, hostile.SendSlowly(time.Millisecond), hostile.LargeObject(1<<20)),
		"trickle-kinds":     when(hostile.IsDiscovery, hostile.SendSlowly(time.Second)),
		"silent":            when(objects, hostile.NoResponse()),
		"silent-kinds":      hostile.NoResponse(),
		"expired":           when(hostile.IsWatch, hostile.WatchExpired()),
		"ending":            when(hostile.IsWatch, hostile.EmptyWatch()),
		"flood":             when(hostile.IsWatch, hostile.WatchEndlessly()),
		"groups":            hostile.AddGroups(200_000, false),
		"groups-aggregated": hostile.AddGroups(200_000, true),
		"redirect":          when(objects, hostile.Redirect("https://169.254.169.254/")),
		"another-format":    when(objects, hostile.ContentType("application/vnd.kubernetes.protobuf")),
		"foreign-uids":      when(objects, hostile.ReplaceUIDs("00000000-0000-4000-8000-000000000000")),
		"echo":              when(hostile.IsWrite, hostile.Echo(http.StatusForbidden, hostile.QuoteFuncs()["JSON in JSON"])),
	}
}

var _ = Describe("Deployer with hostile targets", func() {
	It("stays within its memory limit, and starts items of other targets within 2 s, also beside 2000 items of one namespace [F2] [F3] [F4] [F6]", func(ctx SpecContext) {
		servers := map[string]*hostile.Server{}
		for name, behaviour := range newBehaviours() {
			servers[name] = hostile.New(behaviour)
			DeferCleanup(servers[name].Close)
			namespace(ctx, name)
			createTarget(ctx, name, "target", servers[name].Kubeconfig("token"))
			for i := range hostileItems {
				Expect(ls.Deploy(ctx, newItem(name, fmt.Sprint("item-", i), "target", configMap(fmt.Sprint(name, i))))).To(Succeed())
			}
		}
		ensureQuietNamespace(ctx)
		for _, name := range []string{"healthy", "others", "busy"} {
			namespace(ctx, name)
		}
		for _, name := range []string{"healthy", "others"} {
			createTarget(ctx, name, "target", cp.Kubeconfig())
		}
		busy := hostile.New()
		DeferCleanup(busy.Close)
		createTarget(ctx, "busy", "target", busy.Kubeconfig("token"))

		start(mockDeployer)
		control := newMockItem(quiet, "first")
		Expect(ls.Deploy(ctx, control)).To(Succeed())
		isWorking(ctx, control)
		process, began := start(manifestDeployer), time.Now()
		isWorking(ctx, newItem("expired", "item-0", "target"))
		watch := newStopwatch(ctx, "healthy", "others")

		By("deploying to new targets, until one item of each has ended")
		Expect(ls.Deploy(ctx, newItem("busy", "first", "target", configMap("busy")))).To(Succeed())
		for _, name := range []string{"healthy", "others"} {
			watch.createWithTwin(ctx, newItem(name, "first", "target", configMap(name)))
		}
		var longest time.Duration
		for _, name := range []string{"healthy", "others"} {
			watch.waitForAll(ctx, name, 1)
			wait, _ := watch.maxWait(name)
			longest = max(longest, wait)
		}
		addFigure("from hand-out to start of the first item of a new target", "-", "%s", longest.Round(time.Millisecond))

		By("deploying to a healthy target beside the hostile ones")
		for i := range healthyItems {
			watch.createWithTwin(ctx, newItem("healthy", fmt.Sprint("item-", i), "target", configMap(fmt.Sprint("healthy-", i))))
		}
		watch.waitForAll(ctx, "healthy", 1+healthyItems)
		expectTimelyStart(watch, "healthy", fmt.Sprintf("beside %d hostile targets, %d items each", len(servers), hostileItems))

		By("deploying to a healthy target beside the items of a busy namespace")
		count := createBesideBusyNamespace(ctx, watch, busy)
		watch.waitForAll(ctx, "others", 1+count)
		Eventually(listUnfinished).WithContext(ctx).WithArguments("busy").WithTimeout(patience).WithPolling(2 * time.Second).Should(BeEmpty())
		expectTimelyStart(watch, "others", fmt.Sprintf("beside these, and %d items of another namespace", busyItems))

		most, err := readPeakMemory(process)
		Expect(err).NotTo(HaveOccurred())
		addFigure(fmt.Sprintf("peak memory with %d hostile targets", len(servers)), fmt.Sprintf("<= %d MiB", mostMemory>>20), "%d MiB", most>>20)
		Expect(most).To(BeNumerically("<=", mostMemory), "bytes")
		expectFewRequests(servers, time.Since(began))
	}, SpecTimeout(30*time.Minute))
})

// createBesideBusyNamespace creates very many items in one namespace. While these items are being deployed, it creates
// items in another namespace, one at a time. It returns the number of items in the other namespace.
func createBesideBusyNamespace(ctx context.Context, watch *latencyRecorder, busy *hostile.Server) (count int) {
	GinkgoHelper()
	var creators sync.WaitGroup
	for creator := range 4 {
		creators.Go(func() {
			defer GinkgoRecover()
			for i := creator; i < busyItems; i += 4 {
				di := newItem("busy", fmt.Sprint("item-", i), "target", configMap(fmt.Sprint("busy-", i)))
				Expect(ls.Create(ctx, di)).To(Succeed())
				_, err := ls.Trigger(ctx, client.ObjectKeyFromObject(di))
				Expect(err).NotTo(HaveOccurred())
			}
		})
	}
	Eventually(func(g Gomega) {
		watch.createWithTwin(ctx, newItem("others", fmt.Sprint("item-", count), "target", configMap(fmt.Sprint("others-", count))))
		count++
		written := busy.CountRequests(func(r hostile.Request) bool { return r.Method == http.MethodPatch })
		g.Expect(written).To(BeNumerically(">", busyItems))
	}).WithContext(ctx).WithTimeout(20 * time.Minute).WithPolling(250 * time.Millisecond).Should(Succeed())
	creators.Wait()
	return count
}

// listUnfinished returns the items of a namespace that have not succeeded.
func listUnfinished(g Gomega, ctx context.Context, namespace string) (out []string) { //nolint:revive // Gomega wants itself first
	items := &lsv1alpha1.DeployItemList{}
	g.Expect(c.List(ctx, items, client.InNamespace(namespace))).To(Succeed())
	g.Expect(items.Items).NotTo(BeEmpty())
	for i := range items.Items {
		if status := items.Items[i].Status; string(status.Phase) != succeeded || status.JobID != status.JobIDFinished {
			out = append(out, fmt.Sprintf("%s: %s %+v", items.Items[i].Name, status.Phase, status.LastError))
		}
	}
	return out
}

// expectTimelyStart requires that no item of a namespace waited too long.
func expectTimelyStart(watch *latencyRecorder, namespace, beside string) {
	GinkgoHelper()
	addFigure(fmt.Sprintf("items of %s that finished well", namespace), "all", "all %d", watch.finished(namespace)[succeeded])
	wait, excess := watch.maxWait(namespace)
	addFigure("from hand-out to start "+beside, fmt.Sprintf("<= %s", mostWait), "%s, of which %s the machine's", wait.Round(time.Millisecond), (wait - excess).Round(time.Millisecond))
	Expect(excess).To(BeNumerically("<=", mostWait), "from hand-out to start, more than a control item takes")
}

// expectFewRequests requires that no target received too many requests for one watch.
func expectFewRequests(servers map[string]*hostile.Server, time time.Duration) {
	GinkgoHelper()
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		asked := servers[name].CountRequests(func(r hostile.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/configmaps")
		})
		perMinute := float64(asked) / time.Minutes()
		if name == "expired" || name == "ending" {
			addFigure("requests in 60 s for a watch of the target "+name, fmt.Sprintf("<= %d", mostRequests), "%.0f (%d in %.0f s)", perMinute, asked, time.Seconds())
		}
		Expect(perMinute).To(BeNumerically("<=", mostRequests), "requests for the watch of %s, %d in %s", name, asked, time)
	}
}

var _ = Describe("Deployer with many new targets", func() {
	const count, each = 40, 3

	It("starts the item of another new target within 2 s although the writes of the others never end [F107]", func(ctx SpecContext) {
		server := hostile.New(hostile.When(hostile.IsWrite, hostile.SendSlowly(time.Second)))
		DeferCleanup(server.Close)
		names := []string{}
		for i := range count {
			name := fmt.Sprint("untried-", i)
			names = append(names, name)
			namespace(ctx, name)
			createTarget(ctx, name, "target", server.Kubeconfig(name))
		}
		namespace(ctx, "new")
		createTarget(ctx, "new", "target", cp.Kubeconfig())
		ensureQuietNamespace(ctx)
		start(mockDeployer)
		control := newMockItem(quiet, "control")
		Expect(ls.Deploy(ctx, control)).To(Succeed())
		isWorking(ctx, control)
		start(manifestDeployer)
		watch := newStopwatch(ctx, "new")
		for i := range each {
			for _, name := range names {
				Expect(ls.Deploy(ctx, newItem(name, fmt.Sprint("item-", i), "target", configMap(fmt.Sprint(name, i))))).To(Succeed())
			}
		}
		isWorking(ctx, newItem(names[0], "item-0", "target"))
		watch.createWithTwin(ctx, newItem("new", "first", "target", configMap("new")))
		watch.waitForAll(ctx, "new", 1)
		wait, excess := watch.maxWait("new")
		addFigure(fmt.Sprintf("from hand-out to start of the item of a new target beside %d whose writes never end", count), "-", "%s", wait.Round(time.Millisecond))
		Expect(excess).To(BeNumerically("<=", mostWait))
	}, SpecTimeout(20*time.Minute))
})
