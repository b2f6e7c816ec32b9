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

// PoolOptions configures a Pool. The zero value supports targets with kubeconfigs.
type PoolOptions struct {
	// Policy is what Targets may use. The default is the strictest policy.
	Policy Policy
	// Resolver reads the secrets of the old form {"kubeconfig": {"secretRef": …}}, and reads them again when a target
	// rejects credentials. Use the same one that resolves the Targets. Without a Resolver, the old form is rejected,
	// and changed secrets are read after the maximum age of the Resolver that resolves the Targets.
	Resolver *Resolver
	// Landscaper is the access to the Landscaper cluster. Self targets use its address and CA, but never its
	// credentials. EnableSelf requires it.
	Landscaper *rest.Config
	// LandscaperClient creates and reviews tokens in the Landscaper cluster. EnableOIDC and EnableSelf require it.
	LandscaperClient client.Client
	// Scheme is the scheme of the clients. The default is the scheme of client-go.
	Scheme *runtime.Scheme
	// Clock is the source of time. The default is the real clock.
	Clock clock.PassiveClock
	// MaxClients is the number of clients that are kept. If there are more, the least recently used ones that are not
	// pinned leave the pool. The default is 200.
	MaxClients int
	// GetTimeout is how long Get waits for the first response of a target. The attempt to connect continues after that.
	// The default is 1 s.
	GetTimeout time.Duration
	// ConnectTimeout limits an attempt to connect, and a discovery. The default is 10 s.
	ConnectTimeout time.Duration
	// RequestTimeout limits every request except watches. The default is 60 s, the limit of an API server.
	RequestTimeout time.Duration
	// MinPause and MaxPause limit the pauses between attempts to reach a target that is down. The defaults are 1 s and
	// 1 min.
	MinPause, MaxPause time.Duration
	// Limits limits what responses of targets can cost.
	Limits Limits
	// WrapTransport wraps the transport of every client. It sees every request, without credentials. It is optional.
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

// Pool holds one client per target, however many deploy items the target has. Targets with equal content share one. A
// Pool is safe for concurrent use. It works without Start, which only ends the pool together with a manager.
type Pool struct {
	o       PoolOptions
	metrics *poolMetrics
	ctx     context.Context // cancelled at the end of the pool
	end     context.CancelFunc
	life    sync.Mutex // guards the end, and what is started before it; locked after all other locks
	running sync.WaitGroup

	reading, decoding *budget.Budget // shared by all clients

	mu      sync.Mutex
	clients map[string]*list.Element       // by key; values are *Client
	used    *list.List                     // the most recently used one first
	ties    map[types.NamespacedName]*tied // by Target
}

// tied is the state of a Target when it was last used.
type tied struct {
	client *Client
	uid    types.UID
	sum    contentSum
	legacy bool // the content names a secret and does not contain its data
}

// NewPool returns an empty Pool.
func NewPool(o PoolOptions) *Pool {
	o.setDefaults()
	p := &Pool{o: o, metrics: newPoolMetrics(), clients: map[string]*list.Element{}, used: list.New(), ties: map[types.NamespacedName]*tied{}}
	p.reading, p.decoding = budget.New("read", raisedBy("Reading"), p.o.Limits.Reading), budget.New("decoded", raisedBy("Decoding"), p.o.Limits.Decoding)
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// Start closes the pool when ctx is done, and then returns. Add the pool to a manager, or call Start in a goroutine.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.Close()
	return nil
}

// NeedLeaderElection returns false, so that the manager also starts the pool on replicas that are not the leader.
func (p *Pool) NeedLeaderElection() bool { return false }

// Close closes all clients and waits for the goroutines of the pool. After that, Get and requests fail with ErrClosed.
// Further calls do nothing.
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

// Get returns the client of a resolved Target of type kubernetes-cluster. It creates one only if there is none for this
// content, and waits only for the first response of a target, at most for PoolOptions.GetTimeout. If the content of a
// Target changed but its server did not, the client stays the same and uses the new credentials.
//
// The error is a *ConfigError if the content or the Policy does not allow to use the target, a *ResolveError if a
// secret that the content names cannot be read, and ErrClosed after Close. It is an *UnreachableError if the target
// does not respond or responds with an error. That may wrap a *ConfigError, for a name that resolves to a forbidden
// address and for a token that is valid at the Landscaper.
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

// asBefore returns the client of a Target whose content did not change, without parsing the content again.
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

// take returns the client with this configuration: an existing one, the Target's previous one with replaced
// credentials, or a new one.
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

// canRotate reports whether the client can use the credentials of m: the server is the same, and no other Target uses
// the old credentials. It does not compare the identities, because nothing in the credentials can be trusted without
// the server.
func (c *Client) canRotate(m *clientConfig) bool {
	return c.fixed && m.tokens == nil && c.place == m.place && len(c.ties) == 1
}

// bind records that the Target uses the client. Its previous client is dropped if no other Target uses it.
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

// shrink drops the least recently used clients until there are not too many, or all others are pinned.
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

// drop removes the client from the pool. Current users of the client can finish.
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

// forget drops the Secrets of the client's Targets from the cache, so that they are read again.
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

// goRun runs f in a goroutine that Close waits for. It returns false after Close.
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
