// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	// bareVariable is the environment variable with the namespace of the bare loop. If it is set, the test binary runs
	// the loop instead of the benchmarks.
	bareVariable = "DEPLOYERKIT_BENCH_BARE"
	// mockVariable is the environment variable that makes the test binary run the mock deployer, with the arguments of
	// the process.
	mockVariable = "DEPLOYERKIT_BENCH_MOCK"
	// profileVariable is the environment variable with a directory. If it is set, the processes write profiles of their
	// processor time there, and the test binary replaces the mock deployer.
	profileVariable = "DEPLOYERKIT_BENCH_PROFILES"
	// processTimeout limits each wait for a process.
	processTimeout = 10 * time.Minute
)

// TestMain runs the benchmarks, or the bare loop in a process that a benchmark has started.
func TestMain(m *testing.M) {
	switch namespace := os.Getenv(bareVariable); {
	case namespace != "":
		os.Exit(runWithProfile("bare", func() int {
			if err := runBare(namespace); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			return 0
		}))
	case os.Getenv(mockVariable) != "":
		os.Exit(runWithProfile("mock", func() int {
			return deployermain.Main(deployermain.Program{Name: "mock-deployer", Args: mock.Args(nil)})
		}))
	}
	os.Exit(m.Run())
}

// runWithProfile calls a function, and writes a profile of its processor time if profileVariable is set.
func runWithProfile(name string, do func() int) int {
	dir := os.Getenv(profileVariable)
	if dir == "" {
		return do()
	}
	file, err := os.Create(filepath.Join(dir, name+"-"+strconv.Itoa(os.Getpid())+".pprof")) //nolint:gosec // the user names the directory
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer file.Close() //nolint:errcheck // a benchmark's
	defer pprof.StopCPUProfile()
	return do()
}

// runBare runs the bare loop on the items of a namespace until SIGTERM.
func runBare(namespace string) error {
	ctrl.SetLogger(logr.Discard())
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	cfg.QPS = -1
	cfg.UserAgent = "bare-loop" // a field manager that differs from the creator of the items, like that of a deployer
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, ByObject: deployerlib.CacheByObject(itemType)},
	})
	if err != nil {
		return err
	}
	if err := (&bare{}).add(mgr); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// processBench is a control plane and the programs that run on it.
type processBench struct {
	*testing.B

	client     client.WithWatch
	config     *rest.Config
	kubeconfig string
	program    string // path of the mock deployer
}

// newProcessBench starts a control plane and builds the mock deployer.
func newProcessBench(b *testing.B) *processBench {
	b.Helper()
	cp, err := controlplane.Start(b.Context(), controlplane.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			b.Error(err)
		}
	})
	ctrl.SetLogger(logr.Discard())
	w := &processBench{B: b, config: cp.Config, program: filepath.Join(b.TempDir(), "mock-deployer")}
	if w.kubeconfig, err = cp.WriteKubeconfig(""); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", w.program, "github.com/deployerkit/deployerkit/cmd/mock-deployer").CombinedOutput(); err != nil { //nolint:gosec // ours
		b.Fatalf("build the mock deployer: %v\n%s", err, out)
	}
	scheme, err := landscapertest.Scheme()
	if err != nil {
		b.Fatal(err)
	}
	if w.client, err = client.NewWithWatch(cp.Config, client.Options{Scheme: scheme}); err != nil {
		b.Fatal(err)
	}
	// The API server rejects the first watch of a kind that was never requested, and asks the client to wait for a second.
	for _, list := range []client.ObjectList{&lsv1alpha1.DeployItemList{}, &lsv1alpha1.TargetList{}, &lsv1alpha1.ContextList{}} {
		if err := w.client.List(b.Context(), list); err != nil {
			b.Fatal(err)
		}
	}
	return w
}

// newItems creates items in a new namespace, each with a job that no deployer has started.
func (w *processBench) newItems(n int) *itemSet {
	w.Helper()
	f := &itemSet{client: w.client, ls: landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{})}
	if err := f.createItems(w.Context(), n); err != nil {
		w.Fatal(err)
	}
	w.trigger(f)
	return f
}

// trigger starts a job of each item.
func (w *processBench) trigger(f *itemSet) {
	w.Helper()
	if err := f.each(w.Context(), func(ctx context.Context, key types.NamespacedName) error {
		_, err := f.ls.Trigger(ctx, key)
		return err
	}); err != nil {
		w.Fatal(err)
	}
}

// newMock returns a process of the mock deployer with its default settings, except for endpoints and leader election.
func (w *processBench) newMock(args ...string) *exec.Cmd {
	args = append([]string{"--kubeconfig=" + w.kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--history-bind-address=127.0.0.1:0"}, args...)
	if os.Getenv(profileVariable) == "" {
		return exec.Command(w.program, args...) //nolint:gosec // built here
	}
	cmd := exec.Command(os.Args[0], args...) //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), mockVariable+"=true")
	return cmd
}

// newBare returns a process of the bare loop for a namespace.
func (w *processBench) newBare(namespace string) *exec.Cmd {
	cmd := exec.Command(os.Args[0]) //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), bareVariable+"="+namespace, "KUBECONFIG="+w.kubeconfig)
	return cmd
}

// usage is what processes needed from their start until the jobs of all items were finished.
type usage struct {
	took time.Duration
	cpu  time.Duration // including the end of the processes
	rss  int64         // the largest resident set of a process, in bytes
}

// run starts processes, waits until the jobs of all items are finished, and ends the processes.
func (w *processBench) run(sets []*itemSet, processes ...*exec.Cmd) usage {
	w.Helper()
	list := &lsv1alpha1.DeployItemList{}
	if err := w.client.List(w.Context(), list, client.Limit(1)); err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.Context(), processTimeout)
	defer cancel()
	began := time.Now()
	for _, cmd := range processes {
		w.start(cmd)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range sets {
		group.Go(func() error { return f.waitUntilFinished(ctx, list.ResourceVersion) })
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
	u := usage{took: time.Since(began)}
	for _, cmd := range processes {
		used := w.stop(cmd)
		u.cpu, u.rss = u.cpu+used.cpu, max(u.rss, used.rss)
	}
	return u
}

// start starts a process. If it still runs at the end of the benchmark, it is killed.
func (w *processBench) start(cmd *exec.Cmd) {
	w.Helper()
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill() })
}

// stop ends a process with SIGTERM and returns its usage.
func (w *processBench) stop(cmd *exec.Cmd) usage {
	w.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		w.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		w.Fatal(err)
	}
	u := usage{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.rss = r.Maxrss << 10
	}
	return u
}

// printUsages prints a table. The last column compares the first two rows.
func (w *processBench) printUsages(title string, jobs int, names []string, all []usage) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n%s\tjobs/s\tCPU ms/job\tMiB\t\n", title)
	for i, name := range names {
		fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.0f\t\n", name, float64(jobs)/all[i].took.Seconds(), all[i].cpu.Seconds()*1000/float64(jobs), float64(all[i].rss)/(1<<20))
	}
	if err := table.Flush(); err != nil {
		w.Fatal(err)
	}
	w.Log(text.String())
}

// BenchmarkScaleProcess runs the mock deployer and the bare loop as processes, without leader election, and measures
// them from outside: from the start of the process until the last job is finished. The two programs alternate, and the
// items of each run are new. The sums of all rounds count.
func BenchmarkScaleProcess(b *testing.B) {
	w := newProcessBench(b)
	items, rounds := getSize("SCALE_ITEMS", 3000), getSize("SCALE_ROUNDS", 3)
	for b.Loop() {
		var sums [2]usage
		for round := range rounds {
			for i := range sums {
				contender := (i + round) % 2
				f := w.newItems(items)
				cmd := w.newMock("--leader-elect=false", "--namespace="+f.namespace)
				if contender == 1 {
					cmd = w.newBare(f.namespace)
				}
				u := w.run([]*itemSet{f}, cmd)
				b.Logf("round %d, contender %d: %.1f s, CPU %.2f s, %d MiB", round, contender, u.took.Seconds(), u.cpu.Seconds(), u.rss>>20)
				sums[contender] = usage{took: sums[contender].took + u.took, cpu: sums[contender].cpu + u.cpu, rss: max(sums[contender].rss, u.rss)}
			}
		}
		w.printUsages(fmt.Sprintf("%d items, one job each, %d rounds", items, rounds), items*rounds, []string{"mock deployer", "bare loop"}, sums[:])
		b.ReportMetric(sums[1].took.Seconds()/sums[0].took.Seconds(), "speed-ratio")
		b.ReportMetric(sums[0].cpu.Seconds()/sums[1].cpu.Seconds(), "cpu-ratio")
	}
}

// getSize returns the value of an environment variable, or the default.
func getSize(variable string, size int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return size
}

// BenchmarkScaleShards compares one process with four processes, each with one of four shards. The items are in 40
// namespaces. All processes share the processors with the API server.
func BenchmarkScaleShards(b *testing.B) {
	w := newProcessBench(b)
	const namespaces = 40
	for b.Loop() {
		var all []usage
		for _, shards := range []int{1, 4} {
			sets := make([]*itemSet, namespaces)
			for i := range sets {
				sets[i] = w.newItems(getSize("SCALE_ITEMS", 2000) / namespaces)
			}
			var processes []*exec.Cmd
			for i := range shards {
				processes = append(processes, w.newMock(fmt.Sprintf("--leader-election-id=shards-%d", shards), fmt.Sprintf("--shards=%d", shards), fmt.Sprintf("--shard=%d", i)))
			}
			all = append(all, w.run(sets, processes...))
		}
		w.printUsages("2000 items in 40 namespaces", getSize("SCALE_ITEMS", 2000), []string{"1 process", "4 processes with 4 shards"}, all)
		b.ReportMetric(all[0].took.Seconds()/all[1].took.Seconds(), "speed-ratio")
	}
}
