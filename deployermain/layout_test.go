// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// leaseStore is an API server for leases. It refuses outdated versions.
type leaseStore struct {
	mu      sync.Mutex
	leases  map[string]*coordinationv1.Lease
	version int
}

func newLeaseStore() *leaseStore { return &leaseStore{leases: map[string]*coordinationv1.Lease{}} }

// storeClient is the access of one process to a leaseStore.
type storeClient struct {
	coordinationv1client.LeaseInterface // not implemented

	store *leaseStore
	// call is called before each request. It may wait, or return an error.
	call func() error
}

func (c *storeClient) Leases(string) coordinationv1client.LeaseInterface { return c }

func (c *storeClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := c.call(); err != nil {
		return nil, err
	}
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	lease, ok := c.store.leases[name]
	if !ok {
		return nil, apierrors.NewNotFound(leases, name)
	}
	return lease.DeepCopy(), nil
}

func (c *storeClient) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return c.write(ctx, lease)
}

func (c *storeClient) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return c.write(ctx, lease)
}

func (c *storeClient) write(_ context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := c.call(); err != nil {
		return nil, err
	}
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	stored := ""
	if old, ok := c.store.leases[lease.Name]; ok {
		stored = old.ResourceVersion
	}
	if stored != lease.ResourceVersion {
		return nil, apierrors.NewConflict(leases, lease.Name, errors.New("outdated"))
	}
	c.store.version++
	lease = lease.DeepCopy()
	lease.ResourceVersion = strconv.Itoa(c.store.version)
	c.store.leases[lease.Name] = lease
	return lease.DeepCopy(), nil
}

// fleet is a set of simulated processes. It records which process works on which namespace.
type fleet struct {
	t          *testing.T
	store      *leaseStore
	random     *rand.Rand
	namespaces []string

	mu      sync.Mutex
	working map[string]string // the process that works on a namespace
	served  map[string]bool   // the namespaces on which a process has worked since the last reset
	changes int               // how often a process began to work
}

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{t: t, store: newLeaseStore(), random: rand.New(rand.NewPCG(seed, 0)), working: map[string]string{}, served: map[string]bool{}}
	for i := range 24 {
		f.namespaces = append(f.namespaces, fmt.Sprintf("ns-%d", i))
	}
	return f
}

// begin records that a process begins to work on its namespaces.
func (f *fleet) begin(process string, shard deployerlib.Shard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	for _, ns := range f.namespaces {
		if !shard.Contains(ns) {
			continue
		}
		if other, ok := f.working[ns]; ok {
			f.t.Errorf("%s begins to work on namespace %s while %s works on it", process, ns, other)
		}
		f.working[ns], f.served[ns] = process, true
	}
}

// end records that a process has ended its work.
func (f *fleet) end(process string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ns, worker := range f.working {
		if worker == process {
			delete(f.working, ns)
		}
	}
}

// intn returns a random number.
func (f *fleet) intn(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}

// simulated is a process with one shard.
type simulated struct {
	fleet *fleet
	name  string
	shard deployerlib.Shard
	ended chan struct{}

	mu        sync.Mutex
	busy      bool
	dead      bool
	isolated  bool
	stopWork  context.CancelFunc
	stopElect context.CancelFunc
}

// start starts a process, which restarts if it loses its lease.
func (f *fleet) start(name string, index, count int) *simulated {
	ctx, cancel := context.WithCancel(f.t.Context())
	p := &simulated{fleet: f, name: name, shard: deployerlib.Shard{Index: index, Count: count}, stopElect: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for generation := 0; ctx.Err() == nil; generation++ {
			p.run(ctx, fmt.Sprintf("%s-%d", name, generation))
			pass(time.Duration(f.intn(3000)) * time.Millisecond)
		}
	}()
	return p
}

// run runs the process until it loses its lease or ctx is done.
func (p *simulated) run(ctx context.Context, identity string) {
	client := &storeClient{store: p.fleet.store, call: p.call}
	id := getShardLeaseName("x", p.shard)
	l := &lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: id}, Client: client, LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		log: logr.Discard(), clock: clock.RealClock{}, maxWait: defaultLeaseDuration, renewal: defaultRenewDeadline, retry: defaultRetryPeriod, busy: p.isBusy,
		forbidden: map[string]time.Time{},
		layout: &layout{
			leases: client, id: "x", shards: max(p.shard.Count, 1), duration: defaultLeaseDuration, clock: clock.RealClock{}, observed: map[string]observedLease{},
		},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: defaultLeaseDuration, RenewDeadline: defaultRenewDeadline, RetryPeriod: defaultRetryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { p.work(ctx, identity) }, OnStoppedLeading: p.endWork,
		},
	})
}

// call delays a request, or refuses it if the process is dead or isolated.
func (p *simulated) call() error {
	pass(time.Duration(p.fleet.intn(400)) * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead || p.isolated {
		return errors.New("no connection")
	}
	return nil
}

func (p *simulated) isBusy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

// work works on the namespaces of the shard until the process loses its lease or stops.
func (p *simulated) work(ctx context.Context, identity string) {
	p.mu.Lock()
	if p.dead || ctx.Err() != nil {
		p.mu.Unlock()
		return
	}
	ctx, p.stopWork = context.WithCancel(ctx)
	p.busy = true
	p.mu.Unlock()
	p.fleet.begin(identity, p.shard)
	<-ctx.Done()
	p.fleet.end(identity)
	p.mu.Lock()
	p.busy = false
	p.mu.Unlock()
}

// endWork ends the work of the process.
func (p *simulated) endWork() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopWork != nil {
		p.stopWork()
	}
}

// terminate ends the process like SIGTERM: it ends its work, and then releases its lease.
func (p *simulated) terminate() {
	p.endWork()
	synctest.Wait()
	p.stopElect()
	<-p.ended
}

// kill ends the process like SIGKILL.
func (p *simulated) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.endWork()
	p.stopElect()
	<-p.ended
}

// setIsolated begins or ends a time in which the process has no connection.
func (p *simulated) setIsolated(isolated bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isolated = isolated
}

// pass lets the time of the simulation pass.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the time of a synctest bubble

// checkServed fails the test unless each namespace is worked on within a few durations of a lease.
func (f *fleet) checkServed() {
	f.t.Helper()
	pass(6 * defaultLeaseDuration)
	f.mu.Lock()
	defer f.mu.Unlock()
	var idle []string
	for _, ns := range f.namespaces {
		if f.working[ns] == "" {
			idle = append(idle, ns)
		}
	}
	if len(idle) > 0 {
		f.t.Errorf("no process works on the namespaces %s; leases: %s", strings.Join(idle, ", "), f.store)
	}
}

// String returns the holders and annotations of the leases.
func (s *leaseStore) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for name, lease := range s.leases {
		holder := ""
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		fmt.Fprintf(&b, "%s=%q %s; ", name, holder, lease.Annotations[layoutAnnotation])
	}
	return b.String()
}

// startAll starts the processes of all shards.
func (f *fleet) startAll(name string, count int) []*simulated {
	var all []*simulated
	for index := range count {
		all = append(all, f.start(fmt.Sprintf("%s-%d-of-%d", name, index, count), index, count))
	}
	return all
}

func TestNumberOfShards(t *testing.T) {
	t.Run("after a change, the new processes begin when the old processes have released their leases [Sh3]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 1)
			for _, count := range []int{1, 4, 2, 3, 1} {
				processes := f.startAll("pod", count)
				f.checkServed()
				next := f.startAll("next", count%4+1) // these wait, because all old processes work
				before := f.changes
				pass(4 * defaultLeaseDuration)
				if f.changes != before {
					t.Errorf("%d shards: want the new processes to wait, but one began", count)
				}
				for _, p := range append(processes, next...) {
					p.terminate()
				}
			}
		})
	})

	t.Run("a handover without a kill takes a few seconds [Sh3]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 2)
			old := f.startAll("old", 4)
			f.checkServed()
			next := f.startAll("new", 2)
			for _, p := range old {
				p.terminate()
			}
			pass(10 * time.Second)
			f.mu.Lock()
			if len(f.working) != len(f.namespaces) {
				t.Errorf("want a process for each of %d namespaces after 10 s, got %d; %s", len(f.namespaces), len(f.working), f.store)
			}
			f.mu.Unlock()
			for _, p := range next {
				p.terminate()
			}
		})
	})

	t.Run("a standby takes over at most the duration of a lease and a retry period after the leader was killed [Sh3]", func(t *testing.T) {
		for seed := range uint64(20) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, seed)
				leader := f.start("leader", 0, 1)
				pass(time.Minute)
				standby := f.start("standby", 0, 1)
				pass(time.Minute + time.Duration(f.intn(5000))*time.Millisecond)
				leader.kill()
				pass(defaultLeaseDuration + defaultRetryPeriod + time.Second) // a request takes up to 0.4 s
				f.mu.Lock()
				if len(f.working) != len(f.namespaces) {
					t.Errorf("seed %d: want that the standby works, got %d namespaces; %s", seed, len(f.working), f.store)
				}
				f.mu.Unlock()
				standby.terminate()
			})
		}
	})

	t.Run("processes of a third number also wait for those of the first number [Sh4]", func(t *testing.T) {
		l, clk := newFakeLock(&fakeLease{}, false)
		l.layout.shards = 4
		if _, err := l.layout.write(t.Context(), nil, layoutRecord{Shards: 3, Draining: []int{2}}); err != nil {
			t.Fatal(err)
		}
		holder := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: getShardLeaseName("x", deployerlib.Shard{Index: 1, Count: 2})}}
		holder.Spec.HolderIdentity = new("a process of the first number")
		if _, err := l.layout.leases.Create(t.Context(), holder, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		clk.Step(time.Minute)
		if adopted, err := l.layout.tryAdopt(t.Context()); err != nil || !adopted {
			t.Fatalf("tryAdopt(...): want the number of this process in the record, got %t, %v", adopted, err)
		}
		if current, drained, err := l.layout.checkCurrent(t.Context()); err != nil || !current || drained {
			t.Errorf("checkCurrent(...): want current and not drained, got %t, %t, %v", current, drained, err)
		}
		clk.Step(time.Minute)
		if current, drained, err := l.layout.checkCurrent(t.Context()); err != nil || !current || !drained {
			t.Errorf("checkCurrent(...): want drained when the lease has expired, got %t, %t, %v", current, drained, err)
		}
	})

	t.Run("at no time do two processes work on a namespace while processes with other numbers of shards start, stop, are killed and are isolated, and in the end each namespace has a process [Sh4]", func(t *testing.T) {
		changes := 0
		for seed := range uint64(60) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, seed)
				f.disturb(120)
				changes += f.changes
			})
		}
		if changes < 600 {
			t.Errorf("want many processes that begin to work, got %d: the test is too weak", changes)
		}
	})
}

// disturb makes random changes to a fleet, and then checks that one set of processes works on all namespaces.
func (f *fleet) disturb(steps int) {
	running := map[string]*simulated{}
	pick := func() *simulated {
		names := slices.Sorted(maps.Keys(running))
		if len(names) == 0 {
			return nil
		}
		return running[names[f.intn(len(names))]]
	}
	for step := range steps {
		switch f.intn(6) {
		case 0, 1, 2:
			count := 1 + f.intn(4)
			name := fmt.Sprintf("p%d", step)
			running[name] = f.start(name, f.intn(count), count)
		case 3:
			if p := pick(); p != nil {
				p.terminate()
				delete(running, p.name)
			}
		case 4:
			if p := pick(); p != nil {
				p.kill()
				delete(running, p.name)
			}
		case 5:
			if p := pick(); p != nil {
				p.setIsolated(true)
				time.AfterFunc(time.Duration(f.intn(40))*time.Second, func() { p.setIsolated(false) })
			}
		}
		pass(time.Duration(f.intn(12_000)) * time.Millisecond)
	}
	for _, p := range running {
		p.kill()
	}
	last := f.startAll("last", 3)
	f.checkServed()
	for _, p := range last {
		p.terminate()
	}
}
