// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	// recordsVariable is the environment variable with the directory of the records. If it is set, the test binary runs
	// as a deployer.
	recordsVariable = "DEPLOYERKIT_TEST_RECORDS"
	lockingType     = "example.org/locking"
)

// runLockingDeployer runs the lockingDeployer in a process that the spec about shards has started.
func runLockingDeployer() int {
	p := deployermain.Program{Name: "locking", Args: deployerlib.DeployerArgs{
		Name: "locking", Type: lockingType, Deployer: &lockingDeployer{dir: os.Getenv(recordsVariable)},
	}}
	return deployermain.Main(p)
}

// lockingDeployer locks a file for each item during a call. The kernel releases the lock when the process ends, even if
// it was killed. If another call holds the lock, two processes work on one item.
type lockingDeployer struct {
	deployerlib.Base

	dir string
	mu  sync.Mutex
}

func (d *lockingDeployer) Reconcile(_ context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	file, err := os.OpenFile(filepath.Join(d.dir, di.Namespace+"."+di.Name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // releases the lock
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(err, d.record("double", di))
	}
	if err := d.record("call", di); err != nil {
		return err
	}
	time.Sleep(150 * time.Millisecond) //nolint:forbidigo // a call takes some time
	return nil
}

func (d *lockingDeployer) Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return d.Reconcile(ctx, lsCtx, di, target)
}

// record appends a line to the file of this process.
func (d *lockingDeployer) record(what string, di *lsv1alpha1.DeployItem) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	file, err := os.OpenFile(filepath.Join(d.dir, strconv.Itoa(os.Getpid())+".record"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, what, di.Namespace, di.Name, di.Status.JobID)
	return errors.Join(err, file.Close())
}

// shardedDeployer is a set of processes of the lockingDeployer.
type shardedDeployer struct {
	dir string
}

// start starts one process for each shard, and standby processes for some of the shards.
func (s *shardedDeployer) start(shards, standbys int) []*gexec.Session {
	GinkgoHelper()
	var started []*gexec.Session
	for ordinal := range shards + standbys {
		args := append(slices.Clone(testFlags), "--kubeconfig="+kubeconfig, "--history-bind-address=0", fmt.Sprintf("--shards=%d", shards))
		cmd := exec.Command(os.Args[0], args...) //nolint:gosec // this binary
		cmd.Env = append(os.Environ(), recordsVariable+"="+s.dir, fmt.Sprintf("MY_POD_NAME=locking-%d-shards-%d", shards, ordinal))
		session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { session.Kill().Wait(patience) })
		started = append(started, session)
	}
	return started
}

// read returns the numbers of calls of each process, and the lines about double work.
func (s *shardedDeployer) read() (calls map[string]int, doubles []string) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(s.dir, "*.record"))
	Expect(err).NotTo(HaveOccurred())
	calls = map[string]int{}
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // in our directory
		Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(string(content)) {
			if strings.HasPrefix(line, "call ") {
				calls[filepath.Base(file)]++
			} else {
				doubles = append(doubles, line)
			}
		}
	}
	return calls, doubles
}

// load starts jobs of items until stop is closed, and returns when all jobs are finished.
func load(ctx context.Context, ls *landscapertest.Landscaper, items []types.NamespacedName, stop <-chan struct{}) error {
	var group sync.WaitGroup
	faults := make(chan error, len(items))
	for _, item := range items {
		group.Go(func() {
			for {
				job, err := ls.Trigger(ctx, item)
				if err == nil {
					_, err = ls.WaitForJob(ctx, item, job)
				}
				if err != nil {
					faults <- fmt.Errorf("%s: %w", item, err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	group.Wait()
	close(faults)
	var all error
	for err := range faults {
		all = errors.Join(all, err)
	}
	return all
}

var _ = Describe("Shards of a program", func() {
	It("processes each item, and never twice at a time, while the number of shards changes and processes are killed under load [Sh3][Sh4][Sh5]", func(ctx SpecContext) {
		deployer := &shardedDeployer{dir: GinkgoT().TempDir()}
		ls := newLandscaper(c)
		var items []types.NamespacedName
		for i := range 12 {
			namespace := &corev1.Namespace{}
			namespace.Name = fmt.Sprintf("sharded-%d", i)
			Expect(c.Create(ctx, namespace)).To(Succeed())
			for j := range 2 {
				di := ls.Item(namespace.Name, fmt.Sprintf("item-%d", j), lockingType, `{"apiVersion":"example.org/v1","kind":"Locking"}`)
				Expect(ls.Deploy(ctx, di)).To(Succeed())
				items = append(items, client.ObjectKeyFromObject(di))
			}
		}
		stop, loaded := make(chan struct{}), make(chan error, 1)
		go func() { loaded <- load(ctx, ls, items, stop) }()
		var old []*gexec.Session
		for round, shards := range []int{1, 4, 2, 3} {
			started := deployer.start(shards, 1)
			for i, process := range old { // some are killed, and some terminate
				if (i+round)%2 == 0 {
					process.Kill()
				} else {
					process.Terminate()
				}
			}
			before, _ := deployer.read()
			Eventually(func(g Gomega) {
				calls, doubles := deployer.read()
				g.Expect(doubles).To(BeEmpty())
				working := 0
				for process, n := range calls {
					if n > before[process]+5 && slices.ContainsFunc(started, func(s *gexec.Session) bool {
						return strings.HasPrefix(process, strconv.Itoa(s.Command.Process.Pid)+".")
					}) {
						working++
					}
				}
				g.Expect(working).To(Equal(shards), "one process works for each shard")
			}, patience, time.Second).Should(Succeed())
			started[0].Kill() // the standby of the shard 0 takes over
			old = started
		}
		close(stop)
		Eventually(loaded, patience).Should(Receive(BeNil()), "each job ends")
		_, doubles := deployer.read()
		Expect(doubles).To(BeEmpty())
	}, SpecTimeout(6*time.Minute))
})
