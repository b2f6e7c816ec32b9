// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

// process is a replica that runs as a separate process.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// startProgram starts a program. If the program still runs at the end of the spec, it is killed.
func startProgram(env []string, name string, args ...string) *process {
	GinkgoHelper()
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = GinkgoWriter, GinkgoWriter
	Expect(p.cmd.Start()).To(Succeed())
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	DeferCleanup(func() { p.stop(syscall.SIGKILL) })
	return p
}

// stop sends a signal to the process and waits until the process has ended.
func (p *process) stop(signal syscall.Signal) {
	GinkgoHelper()
	_ = p.cmd.Process.Signal(signal) // this call returns an error if the process has already ended
	Eventually(p.ended).Should(BeClosed())
}

// startReplica starts the test binary as a replica for the items of a world.
func (w *env) startReplica() *process {
	GinkgoHelper()
	kubeconfig, err := cp.WriteKubeconfig(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	return startProgram([]string{
		replicaEnv + "=" + kubeconfig, replicaTypeEnv + "=" + string(w.Type), replicaNamespaceEnv + "=" + w.Namespace,
	}, self)
}

// withCallDuration returns a function that changes the configuration of an item. With this configuration, a call for
// the item lasts for the duration d.
func withCallDuration(d time.Duration) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) {
		di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(newConfigBody(fmt.Sprintf(`"takes":%q`, d)))}
	}
}

// leader returns the holder of a lease.
func (w *env) leader(ctx context.Context, namespace, name string) string {
	lease := &coordinationv1.Lease{}
	if err := w.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, lease); err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// createAndStartMany creates items, and returns their keys and the IDs of their jobs.
func (w *env) createAndStartMany(ctx context.Context, n int, change ...func(*lsv1alpha1.DeployItem)) (keys []types.NamespacedName, jobs []string) {
	GinkgoHelper()
	for i := range n {
		di := w.item(fmt.Sprintf("item-%d", i), change...)
		Expect(w.Landscaper.Create(ctx, di)).To(Succeed())
		keys = append(keys, w.Key(di.Name))
		jobs = append(jobs, w.startJob(ctx, w.Key(di.Name)))
	}
	return keys, jobs
}

// countItems returns the number of items for which the function `ok` returns true.
func (w *env) countItems(ctx context.Context, keys []types.NamespacedName, ok func(*lsv1alpha1.DeployItem) bool) int {
	n := 0
	for _, key := range keys {
		if di, err := w.Landscaper.Get(ctx, key); err == nil && ok(di) {
			n++
		}
	}
	return n
}

func isJobFinished(di *lsv1alpha1.DeployItem) bool {
	return di.Status.JobID == di.Status.JobIDFinished && contract.IsFinal(di.Status.Phase)
}

func isOpen(di *lsv1alpha1.DeployItem) bool {
	return di.Status.Phase == phases.Init && !isJobFinished(di)
}

var _ = Describe("Failover", func() {
	It("a replica takes over from a leader that is killed during its jobs, and each job ends once [C14]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		h := w.watchHistory()
		first := w.startReplica()
		Eventually(func() string { return w.leader(ctx, w.Namespace, "replicas") }).ShouldNot(BeEmpty())
		w.startReplica()
		keys, jobs := w.createAndStartMany(ctx, 15, withCallDuration(time.Second))
		Eventually(func() int { return w.countItems(ctx, keys, isJobFinished) }).Should(BeNumerically(">=", 5))
		Eventually(func() int { return w.countItems(ctx, keys, isOpen) }).Should(BeNumerically(">=", 3))
		first.stop(syscall.SIGKILL)
		began := map[string]time.Time{}
		open := w.countItems(ctx, keys, func(di *lsv1alpha1.DeployItem) bool {
			if isOpen(di) {
				began[di.Name] = di.Status.LastReconcileTime.Time
			}
			return isOpen(di)
		})
		Expect(open).To(BeNumerically(">=", 1), "killed in the middle")
		for _, key := range keys {
			di := w.finished(ctx, key)
			Expect(di.Status.Phase).To(Equal(phases.Succeeded))
			if at, ok := began[di.Name]; ok {
				Expect(di.Status.LastReconcileTime.Time).To(BeTemporally("==", at), "the job went on, it did not begin anew")
			}
		}
		h.expectEndedOnce(jobs...)
	}, SpecTimeout(8*time.Minute))

	It("a replica that receives SIGTERM completes its running jobs", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		h := w.watchHistory()
		only := w.startReplica()
		keys, jobs := w.createAndStartMany(ctx, 7, withCallDuration(3*time.Second)) // the five workers cannot process all items at the same time
		Eventually(func() int { return w.countItems(ctx, keys, isOpen) }).Should(Equal(5))
		only.stop(syscall.SIGTERM)
		Expect(only.err).NotTo(HaveOccurred(), "ended with status 0")
		Expect(w.countItems(ctx, keys, isJobFinished)).To(Equal(5))
		Expect(w.countItems(ctx, keys, isOpen)).To(BeZero(), "nothing new was begun")
		w.startReplica()
		for _, key := range keys {
			w.finished(ctx, key)
		}
		h.expectEndedOnce(jobs...)
	}, SpecTimeout(8*time.Minute))

	It("a replica of the mock deployer takes over from a killed leader [C14]", func(ctx SpecContext) {
		const lease = "mock-failover"
		binary := filepath.Join(GinkgoT().TempDir(), "mock-deployer")
		build := exec.CommandContext(ctx, "go", "build", "-o", binary, "../../../cmd/mock-deployer")
		build.Stdout, build.Stderr = GinkgoWriter, GinkgoWriter
		Expect(build.Run()).To(Succeed())
		w := newEnv(ctx, contract.RevisionJobID)
		kubeconfig, err := cp.WriteKubeconfig(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		start := func() *process {
			return startProgram(nil, binary, "--kubeconfig", kubeconfig, "--leader-election-id", lease, "--leader-election-namespace", w.Namespace,
				"--leader-election-lease-duration=4s", "--leader-election-renew-deadline=3s", "--leader-election-retry-period=1s",
				"--metrics-bind-address=0", "--health-probe-bind-address=0", "--workers=1")
		}
		h := w.watchHistory()
		first := start()
		Eventually(func() string { return w.leader(ctx, w.Namespace, lease) }).ShouldNot(BeEmpty())
		start()
		w.Type = "landscaper.gardener.cloud/mock"
		keys, jobs := w.createAndStartMany(ctx, 10, withMockConfig("Progressing"))
		Eventually(func() int {
			return w.countItems(ctx, keys, func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Progressing })
		}).Should(Equal(len(keys)))
		first.stop(syscall.SIGKILL)
		for _, key := range keys {
			Expect(w.Landscaper.Update(ctx, key, map[string]any{"phase": "Succeeded"})).To(Succeed())
		}
		for _, key := range keys {
			Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
		}
		h.expectEndedOnce(jobs...)
	}, SpecTimeout(10*time.Minute))
})

// withMockConfig returns a function that sets a configuration of the mock deployer.
func withMockConfig(phase string) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) {
		di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(fmt.Sprintf(
			`{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration","phase":%q}`, phase))}
	}
}
