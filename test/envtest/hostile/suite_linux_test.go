// SPDX-License-Identifier: Apache-2.0

// Package hostile_test runs the manifest deployer as a process, as it is shipped, next to API servers that do it harm.
package hostile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const (
	// hostileItems are deployed to each hostile target, healthyItems to the healthy one.
	hostileItems, healthyItems = 5, 20
	// mostMemory is what the process may have had at any time.
	mostMemory = 400 << 20
	// mostWait is how long a healthy item may wait for its start: 2 s on an idle machine, more beside other suites.
	mostWait = 5 * time.Second
	patience = 60 * time.Second
)

func TestHostile(t *testing.T) {
	world.Run(t, "hostile targets")
}

// behaviours are 20 targets that do harm, each in its own way.
func behaviours() map[string]hostile.Behaviour {
	objects := hostile.Not(hostile.Discovery)
	when := hostile.When
	return map[string]hostile.Behaviour{
		"huge":              when(objects, hostile.Huge(120<<20)),
		"huge-zipped":       when(objects, hostile.Gzip(), hostile.Huge(120<<20)),
		"large-zipped":      when(objects, hostile.Gzip(), hostile.Huge(7<<20)),
		"huge-lists":        when(hostile.Lists, hostile.Huge(120<<20)),
		"huge-kinds":        when(hostile.Discovery, hostile.Huge(120<<20)),
		"many-values":       when(objects, hostile.Nodes(2_000_000)),
		"deep":              when(objects, hostile.Deep(1_000_000)),
		"endless-pages":     when(hostile.Lists, hostile.EndlessPages(100, 10_000)),
		"trickle":           when(objects, hostile.Trickle(time.Second)),
		"trickle-large":     when(objects, hostile.Trickle(time.Millisecond), hostile.Huge(1<<20)),
		"trickle-kinds":     when(hostile.Discovery, hostile.Trickle(time.Second)),
		"silent":            when(objects, hostile.Silent()),
		"silent-kinds":      hostile.Silent(),
		"expired":           when(hostile.Watches, hostile.Expired()),
		"ending":            when(hostile.Watches, hostile.Ending()),
		"flood":             when(hostile.Watches, hostile.Flood()),
		"groups":            hostile.Groups(200_000, false),
		"groups-aggregated": hostile.Groups(200_000, true),
		"redirect":          when(objects, hostile.Redirect("https://169.254.169.254/")),
		"another-format":    when(objects, hostile.ContentType("application/vnd.kubernetes.protobuf")),
	}
}

var _ = Describe("a deployer with hostile targets", func() {
	It("stays within its memory, and finishes the items of the others [F2] [F3] [F4] [F6]", func(ctx SpecContext) {
		program, err := gexec.Build("github.com/deployerkit/deployerkit/cmd/manifest-deployer")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(gexec.CleanupBuildArtifacts)
		cp := world.StartControlPlane(ctx, controlplane.Options{})
		c := world.NewClient(GinkgoTB(), cp.Config)
		kubeconfig, err := cp.KubeconfigFile("")
		Expect(err).NotTo(HaveOccurred())
		ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.JobID, DeployerType: true})
		t := &tenants{c: c, ls: ls, handed: map[types.NamespacedName]time.Time{}}

		servers := map[string]*hostile.Server{}
		for name, behaviour := range behaviours() {
			servers[name] = hostile.New(behaviour)
			DeferCleanup(servers[name].Close)
			t.deploy(ctx, name, servers[name].Kubeconfig("token"), hostileItems)
		}
		pid := startProgram(program, kubeconfig)
		start := time.Now()
		items := t.deploy(ctx, "healthy", cp.Kubeconfig(), healthyItems)
		longest := t.longest(ctx, "healthy")
		Expect(longest).To(BeNumerically("<=", mostWait), "from hand-out to start")
		for _, item := range items {
			di, err := ls.AwaitFinished(ctx, item)
			Expect(err).NotTo(HaveOccurred())
			Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "%s: %+v", item, di.Status.LastError)
		}
		healthy := time.Since(start)
		Consistently(peak, 15*time.Second, 250*time.Millisecond).WithArguments(pid).Should(BeNumerically("<=", mostMemory), "bytes")
		minutes := time.Since(start).Minutes()
		most, err := peak(pid)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("figures", fmt.Sprintf("peak memory %d MiB, healthy items started within %s, all finished after %s", most>>20, longest.Round(time.Millisecond), healthy.Round(time.Millisecond)), ReportEntryVisibilityAlways)
		for name, server := range servers {
			opened := server.Count(func(r hostile.Request) bool {
				return strings.Contains(r.Query, "watch=") && strings.HasSuffix(r.Path, "/configmaps")
			})
			Expect(float64(opened)).To(BeNumerically("<=", 100*max(1, minutes)), "watches of %s", name)
		}
	})
})

// tenants have a namespace each.
type tenants struct {
	c      client.Client
	ls     *landscapertest.Landscaper
	handed map[types.NamespacedName]time.Time // when each item got its job
}

// longest waits until all items of a tenant have started, and returns the longest time from hand-out to start.
func (t *tenants) longest(ctx SpecContext, name string) (longest time.Duration) {
	GinkgoHelper()
	started := map[types.NamespacedName]bool{}
	Eventually(func(g Gomega) {
		items := &lsv1alpha1.DeployItemList{}
		g.Expect(t.c.List(ctx, items, client.InNamespace(name))).To(Succeed())
		for _, di := range items.Items {
			if key := client.ObjectKeyFromObject(&di); di.Status.Phase != "" && !started[key] {
				started[key], longest = true, max(longest, time.Since(t.handed[key]))
			}
		}
		g.Expect(started).To(HaveLen(len(items.Items)))
	}).WithContext(ctx).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Succeed())
	return longest
}

// deploy makes a tenant with a Target and items, and hands out their first jobs.
func (t *tenants) deploy(ctx SpecContext, name string, kubeconfig []byte, items int) []types.NamespacedName {
	GinkgoHelper()
	Expect(t.c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	content, err := json.Marshal(map[string]any{"kubeconfig": string(kubeconfig)})
	Expect(err).NotTo(HaveOccurred())
	Expect(t.c.Create(ctx, &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "target"},
		Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(content)},
	})).To(Succeed())
	var out []types.NamespacedName
	for i := range items {
		di := t.ls.Item(name, fmt.Sprintf("item-%d", i), manifest.Type, fmt.Sprintf(`{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha2",`+
			`"kind":"ProviderConfiguration","manifests":[{"manifest":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"%s-%d"},"data":{"k":"v"}}}]}`, name, i))
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "target"}
		Expect(t.ls.Deploy(ctx, di)).To(Succeed())
		key := client.ObjectKeyFromObject(di)
		t.handed[key] = time.Now()
		out = append(out, key)
	}
	return out
}

// startProgram starts the manifest deployer without a limit of its memory.
func startProgram(program, kubeconfig string) int {
	GinkgoHelper()
	cmd := exec.Command(program, "--kubeconfig="+kubeconfig, "--leader-elect=false", "--allow-private-hosts", //nolint:gosec // built here
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--grace-period=2s")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GOMEMLIMIT=") || strings.HasPrefix(e, "GOGC=") })
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(patience) })
	return cmd.Process.Pid
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that a process has had, in bytes, as the kernel knows it.
func peak(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := highWater.FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("process %d has ended", pid)
	}
	kib, err := strconv.Atoi(string(found[1]))
	return kib << 10, err
}
