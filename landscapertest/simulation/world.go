// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namedServer is a server of a run.
type namedServer struct {
	*Server
	name string
}

// World is one run of a Scenario: servers, processes, and what happened so far.
type World struct {
	t          testing.TB
	scenario   *Scenario
	seed       uint64
	plan       *plan
	start      time.Time
	landscaper *namedServer
	targets    map[string]*namedServer // by host name
	failed     chan struct{}           // closed at the first violation
	running    sync.WaitGroup          // the replicas

	mu        sync.Mutex
	calm      bool // no more faults happen
	failure   error
	faults    []Fault
	trace     []string
	requests  int
	restarts  int
	writes    int
	elections int
	calls     calls
	holder    *Process // the holder of the lease
	items     map[types.UID]*itemHistory
	stored    []*lsv1alpha1.DeployItem
	deleted   map[string]int     // how often items (keyOfItems) and objects of targets (Request.getKey) were deleted
	late      map[types.UID]bool // for each object in a target, whether the last write of a deployer was late
}

// Seed returns the seed of the run, for random decisions of the scenario.
func (w *World) Seed() uint64 { return w.seed }

// Random returns a number from 0 to n-1. It depends only on the seed and on the text.
func (w *World) Random(about string, n int) int {
	return int(randomBelow(w.seed, about, uint64(n))) //nolint:gosec // less than n
}

// GetElapsed returns the time since the beginning of the run.
func (w *World) GetElapsed() time.Duration { return time.Since(w.start) }

// Landscaper returns the server with the deploy items.
func (w *World) Landscaper() *Server { return w.landscaper.Server }

// Target returns the server of a target, or nil if the scenario has no target with this name.
func (w *World) Target(name string) *Server {
	if server := w.targets[getHost(name)]; server != nil {
		return server.Server
	}
	return nil
}

// IsWrittenLate reports whether the last write of a deployer to an object of a target was late, as Write.Late describes.
// If the item was deleted before the request arrived, the object stays as it is, and no deployer knows it.
func (w *World) IsWrittenLate(obj *unstructured.Unstructured) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late[obj.GetUID()]
}

// NewClient returns a client for the servers that belongs to no replica. No faults happen to its requests. If target is
// empty, it is a client for the server with the deploy items.
func (w *World) NewClient(name, target string) (client.Client, error) {
	server := w.landscaper
	if target != "" {
		server = w.targets[getHost(target)]
	}
	return client.New(w.newProcess(name, false).newConfig(server), client.Options{Scheme: getScheme()})
}

// newProcess returns a process that has not been started yet.
func (w *World) newProcess(name string, faulty bool) *Process {
	return &Process{Name: name, world: w, faulty: faulty, ended: make(chan struct{}), warm: make(chan struct{}), counts: map[Request]int{}, stop: func() {}}
}

// newConfig returns a config for clients of a server.
func (p *Process) newConfig(server *namedServer) *rest.Config {
	return &rest.Config{
		Host: "http://" + server.name, QPS: -1, UserAgent: "simulation", ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
		Transport: roundTripper(func(req *http.Request) (*http.Response, error) { return p.roundTrip(server, req) }),
	}
}

// Fail reports that an invariant is violated, and ends the run. Only the first call has an effect.
func (w *World) Fail(format string, args ...any) { w.fail(fmt.Errorf(format, args...)) }

func (w *World) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(err)
}

func (w *World) failLocked(err error) {
	if w.failure == nil {
		w.failure = err
		w.recordLocked("VIOLATION: %v", err)
		close(w.failed)
	}
}

// maxRequests is the maximum number of requests in a run. More requests are an endless loop.
const maxRequests = 30_000

// record adds a line to the trace.
func (w *World) record(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recordLocked(format, args...)
}

func (w *World) recordLocked(format string, args ...any) {
	if w.requests++; w.requests > maxRequests {
		if w.failure == nil {
			w.failure = fmt.Errorf("endless loop: more than %d requests", maxRequests)
			close(w.failed)
		}
		return
	}
	w.trace = append(w.trace, fmt.Sprintf("%12s ", time.Since(w.start).Round(time.Microsecond))+fmt.Sprintf(format, args...))
}

// decide returns the fault at a request or event, and records it.
func (w *World) decide(at string, kinds []FaultKind) *Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm || time.Since(w.start) > w.scenario.Faults {
		return nil
	}
	f := w.plan.decide(at, kinds)
	if f != nil {
		f.After = time.Since(w.start)
		w.faults = append(w.faults, *f)
		w.recordLocked("FAULT %s", f)
	}
	return f
}

// sleep waits until a duration has passed or the run has ended.
func (w *World) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// countWrites returns the number of changes in all servers so far, apart from leases and events.
func (w *World) countWrites() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// createTarget creates the server and the Target of a target cluster.
func (w *World) createTarget(ctx context.Context, c client.Client, namespace, name string) error {
	host := getHost(name)
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],`+
		`"clusters":[{"name":"a","cluster":{"server":"https://%s"}}],"users":[{"name":"a","user":{"token":"a"}}]}`, host)
	raw, err := json.Marshal(map[string]any{"kubeconfig": kubeconfig})
	if err != nil {
		return err
	}
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	target.Spec = lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(raw)}
	return c.Create(ctx, target)
}

// getHost returns the host name of a target.
func getHost(target string) string { return target + ".example.com" }
