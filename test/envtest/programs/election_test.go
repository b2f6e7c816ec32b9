// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// mockRights are the rights that the mock deployer needs for its items. They do not include the rights for leader
// election.
var mockRights = []rbacv1.PolicyRule{
	allowed(lsGroup, []string{"get", "list", "watch", "patch"}, "deployitems"),
	allowed(lsGroup, []string{"patch"}, "deployitems/status"),
	allowed(lsGroup, []string{"list", "watch"}, "targets", "contexts"),
	allowed("", []string{"get", "create", "update", "delete"}, "secrets"),
	allowed("events.k8s.io", []string{"create"}, "events"),
}

var _ = Describe("Leader election of a program", func() {
	It("releases the lease when the process ends, so that the next process starts at once [F49]", func(ctx SpecContext) {
		// The lease has its default duration of 15 s, so the spec would fail if a process waited until the lease
		// expires.
		args := []string{"--leader-election-lease-duration=15s", "--leader-election-renew-deadline=10s", "--kubeconfig=" + kubeconfig, "--leader-election-id=handed-over", "--item-selector=user=handed-over"}
		first := run(args...)
		Eventually(ctx, leader).WithArguments(ctx, c, "handed-over").WithTimeout(patience).ShouldNot(BeEmpty())
		Eventually(first.Terminate(), patience).Should(gexec.Exit(0))
		Expect(leader(ctx, c, "handed-over")).To(BeEmpty())
		run(args...)
		Eventually(ctx, leader).WithArguments(ctx, c, "handed-over").WithTimeout(12 * time.Second).ShouldNot(BeEmpty())
	})

	It("keeps the lease while an abandoned call still runs [F49]", func(ctx SpecContext) {
		deployer := &uncancellableDeployer{entered: make(chan struct{}), leave: make(chan struct{})}
		DeferCleanup(func() { close(deployer.leave) })
		cmd := deployermain.Command(deployermain.Program{
			Name: "stubborn", Args: deployerlib.DeployerArgs{Name: "stubborn", Type: "example.org/stubborn", Deployer: deployer},
		})
		cmd.SetArgs([]string{
			"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--grace-period=1s",
			"--leader-election-lease-duration=4s", "--leader-election-renew-deadline=3s", "--leader-election-retry-period=1s",
		})
		running, stop := context.WithCancel(ctx)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- cmd.ExecuteContext(running) }()
		ls := newLandscaper(c)
		di := ls.Item(ns, "stubborn", "example.org/stubborn", `{"apiVersion":"example.org/v1","kind":"Stubborn"}`)
		Expect(ls.Deploy(ctx, di)).To(Succeed())
		Eventually(deployer.entered, patience).Should(BeClosed())
		holder := leader(ctx, c, "stubborn")
		Expect(holder).NotTo(BeEmpty())
		stop()
		Eventually(ended, patience).Should(Receive(BeNil()))
		Expect(leader(ctx, c, "stubborn")).To(Equal(holder))
	})

	It("runs two replicas at the same time if leases are forbidden, and each job ends once [F56]", func(ctx SpecContext) {
		access := newRestrictedKubeconfig(ctx, "two-replicas", mockRights...)
		probes := findFreeAddress()
		for _, address := range []string{probes, "0"} {
			run("--kubeconfig="+access, "--leader-election-id=two-replicas", "--item-selector=user=two-replicas", "--health-probe-bind-address="+address)
		}
		ls := newLandscaper(c)
		var items []types.NamespacedName
		for i := range 20 {
			items = append(items, createAndStart(ctx, ls, fmt.Sprintf("two-replicas-%d", i), `,"export":{"a":1}`, func(di *lsv1alpha1.DeployItem) {
				di.Labels = map[string]string{"user": "two-replicas"}
			}))
		}
		Eventually(status, patience).WithArguments("http://" + probes + "/readyz").Should(Equal(http.StatusOK))
		for _, item := range items {
			Expect(ls.WaitUntilFinished(ctx, item)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
			job, err := ls.Trigger(ctx, item)
			Expect(err).NotTo(HaveOccurred())
			di, err := ls.WaitForJob(ctx, item, job)
			Expect(err).NotTo(HaveOccurred())
			Expect(di.Status.JobIDFinished).To(Equal(job))
			Expect(di.Status.LastError).To(BeNil())
		}
		Expect(ls.Delete(ctx, items...)).To(Succeed())
	})
})

var _ = Describe("Readiness of a program", func() {
	It("fails with the reason while lists are forbidden, and recovers when the rights are granted [F56]", func(ctx SpecContext) {
		access := newRestrictedKubeconfig(ctx, "not-ready", allowed(lsGroup, []string{"list", "watch"}, "deployitems"))
		probes := findFreeAddress()
		run("--kubeconfig="+access, "--leader-elect=false", "--item-selector=user=not-ready", "--health-probe-bind-address="+probes)
		Eventually(get, patience).WithArguments("http://" + probes + "/readyz/cache").Should(MatchRegexp(`list (targets|contexts): .* is forbidden`))
		Expect(status("http://" + probes + "/readyz")).To(Equal(http.StatusInternalServerError))
		Expect(status("http://" + probes + "/healthz")).To(Equal(http.StatusOK))
		world.GrantRules(ctx, cp.Config, "system:serviceaccount:default:not-ready", "", mockRights...)
		Eventually(status, 2*patience).WithArguments("http://" + probes + "/readyz").Should(Equal(http.StatusOK))
	})

	It("fails while leases are forbidden, until the program runs without a lease [F56]", func(ctx SpecContext) {
		access := newRestrictedKubeconfig(ctx, "refused", mockRights...)
		probes := findFreeAddress()
		run("--kubeconfig="+access, "--leader-election-id=refused", "--item-selector=user=refused", "--health-probe-bind-address="+probes)
		Eventually(get, patience).WithArguments("http://" + probes + "/readyz/leader-election").Should(ContainSubstring("leases.coordination.k8s.io"))
		Eventually(status, patience).WithArguments("http://" + probes + "/readyz").Should(Equal(http.StatusOK))
	})
})

// uncancellableDeployer is a deployer whose calls ignore that their context is cancelled.
type uncancellableDeployer struct {
	deployerlib.Base

	once           atomic.Bool
	entered, leave chan struct{}
}

func (s *uncancellableDeployer) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	if s.once.CompareAndSwap(false, true) {
		close(s.entered)
	}
	<-s.leave
	return nil
}

func (s *uncancellableDeployer) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// status returns the HTTP status of a page, or 0 if there is no response.
func status(url string) int {
	res, err := http.Get(url) //nolint:gosec,noctx // ours
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}
