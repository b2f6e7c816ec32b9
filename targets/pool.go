// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"container/list"
	"context"
	"net/http"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
)

// PoolOptions say how a Pool makes clients. The zero value serves targets with kubeconfigs.
type PoolOptions struct {
	// Policy is what Targets may ask for. Default: the strictest.
	Policy Policy
	// Resolver reads the secrets of the old form {"kubeconfig": {"secretRef": …}}, and reads them again when a target
	// refuses credentials. Use the one that resolves the Targets. Without a Resolver, the old form is refused, and changed
	// secrets are seen after the Resolver's own time.
	Resolver *Resolver
	// Landscaper is the access to the Landscaper cluster; of it, self targets get the address and the CA, never
	// the credentials. Needed with EnableSelf.
	Landscaper *rest.Config
	// LandscaperClient creates (and reviews) tokens there. Needed with EnableOIDC and EnableSelf.
	LandscaperClient client.Client
	// Scheme of the clients. Default: the scheme of client-go.
	Scheme *runtime.Scheme
	// Clock is the source of time. Default: the real clock.
	Clock clock.PassiveClock
	// MaxClients is how many clients are kept. The least recently used ones end first, pinned ones never. Default: 200.
	MaxClients int
	// GetTimeout is how long Get waits for the first answer of a target. The attempt goes on without the caller. Default: 1 s.
	GetTimeout time.Duration
	// ConnectTimeout bounds an attempt to connect, and a discovery. Default: 10 s.
	ConnectTimeout time.Duration
	// RequestTimeout bounds every request that is not a watch. Default: 60 s, the limit of an API server.
	RequestTimeout time.Duration
	// MinPause and MaxPause bound the pauses between attempts to reach a target that is down. Defaults: 1 s and 1 min.
	MinPause, MaxPause time.Duration
	// Limits bound what targets can cost.
	Limits Limits
	// WrapTransport sees every request of every client, without credentials. Optional.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

func (o *PoolOptions) setDefaults() {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.MaxClients <= 0 {
		o.MaxClients = 200
	}
	for value, standard := range map[*time.Duration]time.Duration{
		&o.GetTimeout: time.Second, &o.ConnectTimeout: 10 * time.Second, &o.RequestTimeout: time.Minute, &o.MinPause: time.Second, &o.MaxPause: time.Minute,
	} {
		if *value <= 0 {
			*value = standard
		}
	}
	o.MaxPause = max(o.MaxPause, o.MinPause)
	o.Limits = o.Limits.withDefaults()
}

// Pool holds one client per target, whatever the number of deploy items. Targets with equal content share one. It is
// safe for concurrent use, and it needs no Start: Start only ties its end to a manager's.
type Pool struct {
	o       PoolOptions
	metrics *poolMetrics
	ctx     context.Context // the life of the pool
	end     context.CancelFunc
	life    sync.Mutex // of the end, and of what is started before it; taken after all other locks
	running sync.WaitGroup

	reading, decoding *budget.Budget // of all clients together

	mu      sync.Mutex
	clients map[string]*list.Element       // by key; of *Client
	used    *list.List                     // the latest in front
	ties    map[types.NamespacedName]*tied // by Target
}

// tied is what a Target had when it was last seen.
type tied struct {
	client *Client
	uid    types.UID
	sum    contentSum
	legacy bool // the content names a secret, and says nothing about what is in there
}

// NewPool returns an empty Pool.
func NewPool(o PoolOptions) *Pool {
	o.setDefaults()
	p := &Pool{o: o, metrics: newPoolMetrics(), clients: map[string]*list.Element{}, used: list.New(), ties: map[types.NamespacedName]*tied{}}
	p.reading, p.decoding = budget.New("read", raisedBy("Reading"), p.o.Limits.Reading), budget.New("decoded", raisedBy("Decoding"), p.o.Limits.Decoding)
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// Start closes the pool when ctx ends, and returns then. Add it to a manager, or run it in a goroutine.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.Close()
	return nil
}

// NeedLeaderElection tells a manager that the pool serves replicas that do not lead, too.
func (p *Pool) NeedLeaderElection() bool { return false }

// Close ends all clients and waits for what the pool itself started. Get and requests then fail with ErrClosed. Calling
// it again does nothing.
func (p *Pool) Close() {
	p.life.Lock()
	p.end()
	p.life.Unlock()
	p.mu.Lock()
	for p.used.Len() > 0 {
		c := clientOf(p.used.Front())
		c.wire.closed.Store(true)
		p.drop(c)
	}
	p.mu.Unlock()
	p.running.Wait()
}

// Get returns the client of a Target of type kubernetes-cluster that was resolved before. It makes one only when
// there is none with this content, and waits only for the first answer of a target, and no longer than
// PoolOptions.GetTimeout. When the content of a Target changed, but not its server, the client stays the same and uses
// the new credentials.
// Errors: *ConfigError when the content, or the Policy, does not allow to use it; *ResolveError when a secret that the
// content names cannot be read; *UnreachableError when the target does not answer, or answers with an error, and when to
// try again (it may wrap a *ConfigError: a name that resolves to a forbidden address, a token that is good at the
// Landscaper); ErrClosed.
func (p *Pool) Get(ctx context.Context, t *lsv1alpha1.ResolvedTarget) (*Client, error) {
	c := p.asBefore(t)
	if c == nil {
		m, err := p.clientConfig(ctx, t)
		if err != nil {
			return nil, err
		}
		if c, err = p.take(t, m); err != nil {
			return nil, err
		}
	}
	if err := c.await(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// asBefore returns the client of a Target whose content did not change, without reading it again.
func (p *Pool) asBefore(t *lsv1alpha1.ResolvedTarget) *Client {
	if t == nil || t.Target == nil {
		return nil
	}
	sum := sumOf(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.ties[nameOf(t)]
	if known == nil || known.legacy || known.sum != sum {
		return nil
	}
	p.used.MoveToFront(p.clients[known.client.key])
	return known.client
}

// take returns the client with this configuration: one that exists, the Target's former one with its credentials swapped, or a
// new one.
func (p *Pool) take(t *lsv1alpha1.ResolvedTarget, m *clientConfig) (*Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, ErrClosed
	}
	c, err := p.find(t, m)
	if err != nil {
		return nil, err
	}
	p.bind(nameOf(t), &tied{client: c, uid: t.UID, sum: sumOf(t), legacy: m.legacy})
	p.shrink(c)
	return c, nil
}

func (p *Pool) find(t *lsv1alpha1.ResolvedTarget, m *clientConfig) (*Client, error) {
	if known := p.clients[m.key]; known != nil {
		p.used.MoveToFront(known)
		return clientOf(known), nil
	}
	if former := p.ties[nameOf(t)]; former != nil && former.uid == t.UID && former.client.canRotate(m) {
		c := former.client
		if err := c.rotate(m); err != nil {
			return nil, err
		}
		p.metrics.event("rotated")
		element := p.clients[c.key]
		delete(p.clients, c.key)
		c.key = m.key
		p.clients[c.key] = element
		p.used.MoveToFront(element)
		return c, nil
	}
	c, err := p.newClient(m, t.Namespace)
	if err != nil {
		return nil, err
	}
	p.metrics.event("created")
	p.clients[c.key] = p.used.PushFront(c)
	return c, nil
}

// canRotate: only at the same server, and only while no other Target relies on the old credentials. Whose credentials
// they are is not asked: nothing in them that could be read without the server is to be trusted.
func (c *Client) canRotate(m *clientConfig) bool {
	return c.fixed && m.tokens == nil && c.place == m.place && len(c.ties) == 1
}

// bind records that the Target uses the client. Its former client ends if no other Target uses it.
func (p *Pool) bind(id types.NamespacedName, now *tied) {
	former := p.ties[id]
	p.ties[id] = now
	now.client.ties[id] = struct{}{}
	if former == nil || former.client == now.client {
		return
	}
	delete(former.client.ties, id)
	if len(former.client.ties) == 0 && former.client.pins == 0 {
		p.drop(former.client)
	}
}

// shrink ends the clients that were not used for longest, until there are not too many, or all others are pinned.
func (p *Pool) shrink(keep *Client) {
	for element := p.used.Back(); element != nil && p.used.Len() > p.o.MaxClients; {
		c := clientOf(element)
		element = element.Prev()
		if c != keep && c.pins == 0 {
			p.metrics.event("evicted")
			p.drop(c)
		}
	}
}

// drop takes the client out of the pool. Who still holds it can finish.
func (p *Pool) drop(c *Client) {
	p.used.Remove(p.clients[c.key])
	delete(p.clients, c.key)
	for id := range c.ties {
		delete(p.ties, id)
	}
	c.end()
	c.wire.link.Load().transport.CloseIdleConnections()
}

func (p *Pool) unpin(c *Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.pins--
	if c.ctx.Err() == nil && c.pins == 0 && len(c.ties) == 0 {
		p.drop(c)
		return
	}
	p.shrink(nil)
}

// forget lets the secrets of the client's Targets be read again.
func (p *Pool) forget(c *Client) {
	if p.o.Resolver == nil {
		return
	}
	p.mu.Lock()
	names := make([]types.NamespacedName, 0, len(c.ties))
	for name := range c.ties {
		names = append(names, name)
	}
	p.mu.Unlock()
	for _, name := range names {
		p.o.Resolver.Forget(name)
	}
}

// goRun runs f in a goroutine that Close waits for; false after the end.
func (p *Pool) goRun(f func()) bool {
	p.life.Lock()
	defer p.life.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.running.Go(f)
	return true
}

func nameOf(t *lsv1alpha1.ResolvedTarget) types.NamespacedName {
	return client.ObjectKeyFromObject(t.Target)
}

func clientOf(element *list.Element) *Client {
	c, _ := element.Value.(*Client)
	return c
}
