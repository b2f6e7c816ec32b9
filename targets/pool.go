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

	"github.com/deployerkit/deployerkit/targets/internal/limits"
)

// PoolOptions configures a Pool. The zero value supports only Targets with a kubeconfig.
type PoolOptions struct {
	// Policy lists the features that Targets may use. The default is the strictest policy.
	Policy Policy
	// Resolver reads the secrets of the old form {"kubeconfig": {"secretRef": …}}. When a target rejects its credentials,
	// the pool makes the Resolver read the secret again. Therefore, use the same Resolver that resolves your Targets. If
	// Resolver is nil, the pool rejects the old form, and it cannot make the Resolver that you use elsewhere read a secret
	// again: after a rejection, that Resolver returns the old secret until its maximum age has passed.
	Resolver *Resolver
	// Landscaper is a config for the Landscaper cluster. Targets with selfConfig use the address and the CA of this
	// config, but never the credentials. If Policy.EnableSelf is true, Landscaper must be set.
	Landscaper *rest.Config
	// LandscaperClient creates and reviews tokens in the Landscaper cluster. If Policy.EnableOIDC or Policy.EnableSelf
	// is true, LandscaperClient must be set.
	LandscaperClient client.Client
	// Scheme is the scheme of the clients. The default is the scheme of client-go.
	Scheme *runtime.Scheme
	// Clock is the source of time. The default is the real clock.
	Clock clock.PassiveClock
	// MaxClients is the maximum number of clients in the pool. If there are more, the least recently used clients leave
	// the pool, except pinned clients. The default is 200.
	MaxClients int
	// GetTimeout is how long Get waits for the first response of a target. After that, Get returns, but the attempt to
	// connect continues. The default is 1 s.
	GetTimeout time.Duration
	// ConnectTimeout limits the duration of an attempt to connect, and of a discovery. The default is 10 s.
	ConnectTimeout time.Duration
	// RequestTimeout limits the duration of every request except watches. The default is 60 s, the limit of an API
	// server.
	RequestTimeout time.Duration
	// MinPause and MaxPause limit the pauses between attempts to reach a target that is down. The defaults are 1 s and
	// 1 min.
	MinPause, MaxPause time.Duration
	// Limits limits the responses of targets.
	Limits Limits
	// WrapTransport wraps the transport of every client. The wrapper receives every request before the credentials are
	// added. WrapTransport may be nil.
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

// Pool contains one client per target, regardless of the number of deploy items that use the target. Targets with equal
// content share a client. A Pool is safe for concurrent use. A Pool works without Start. Start only closes the pool
// when a manager stops.
type Pool struct {
	options PoolOptions
	metrics *poolMetrics
	ctx     context.Context // canceled when the pool is closed
	cancel  context.CancelFunc
	life    sync.Mutex // guards closing the pool and starting goroutines; always locked last
	running sync.WaitGroup

	memory limits.Memory // shared by all clients
	kinds  kindsCache    // shared by all clients

	mu       sync.Mutex
	clients  map[string]*list.Element          // by Client.key; values are *Client
	used     *list.List                        // the most recently used client first
	bindings map[types.NamespacedName]*binding // by name of the Target
}

// binding contains the client that the last call of Get returned for a Target, and the properties of the Target at that
// time.
type binding struct {
	client       *Client
	uid          types.UID
	contentHash  contentHash
	hasSecretRef bool // the content refers to a secret, so equal content can mean different credentials
}

// NewPool returns an empty Pool.
func NewPool(o PoolOptions) *Pool {
	o.setDefaults()
	p := &Pool{options: o, metrics: newPoolMetrics(), clients: map[string]*list.Element{}, used: list.New(), bindings: map[types.NamespacedName]*binding{}}
	p.memory = limits.NewMemory(limits.Limits(p.options.Limits))
	p.ctx, p.cancel = context.WithCancel(context.Background())
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
	p.cancel()
	p.life.Unlock()
	p.mu.Lock()
	for p.used.Len() > 0 {
		c := toClient(p.used.Front())
		c.transport.isClosed.Store(true)
		p.removeClient(c)
	}
	p.mu.Unlock()
	p.running.Wait()
}

// Get returns the client of a resolved Target of type kubernetes-cluster. It creates a client only if the pool has none
// for this content. Get then waits for the first response of the target, but at most for PoolOptions.GetTimeout. If
// only the credentials in the content of a Target have changed, Get returns the same client, which now uses the new
// credentials.
//
// Get returns a *ConfigError if the content is invalid or the Policy does not allow it. It returns a *ResolveError if
// the content refers to a secret that cannot be read, and ErrClosed after Close. If the target does not respond, or
// responds with an error, Get returns an *UnreachableError. The UnreachableError wraps a *ConfigError if the host
// resolves to a forbidden address, or if the token is also valid at Landscaper's API server.
func (p *Pool) Get(ctx context.Context, t *lsv1alpha1.ResolvedTarget) (*Client, error) {
	c := p.getUnchangedClient(t)
	if c == nil {
		m, err := p.newClientConfig(ctx, t)
		if err != nil {
			return nil, err
		}
		if c, err = p.getClientFor(t, m); err != nil {
			return nil, err
		}
	}
	if err := c.waitUntilConnected(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// getUnchangedClient returns the client of a Target if the content of the Target has not changed since the last call of
// Get. Otherwise it returns nil. It does not parse the content.
func (p *Pool) getUnchangedClient(t *lsv1alpha1.ResolvedTarget) *Client {
	if t == nil || t.Target == nil {
		return nil
	}
	sum := hashContent(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.bindings[getTargetKey(t)]
	if known == nil || known.hasSecretRef || known.contentHash != sum {
		return nil
	}
	p.used.MoveToFront(p.clients[known.client.key])
	return known.client
}

// getClientFor returns a client with the given configuration. This is an existing client, the previous client of the
// Target with new credentials, or a new client.
func (p *Pool) getClientFor(t *lsv1alpha1.ResolvedTarget, m *clientConfig) (*Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, ErrClosed
	}
	c, err := p.getOrCreateClient(t, m)
	if err != nil {
		return nil, err
	}
	p.bindTarget(getTargetKey(t), &binding{client: c, uid: t.UID, contentHash: hashContent(t), hasSecretRef: m.hasSecretRef})
	p.evictUnused(c)
	return c, nil
}

func (p *Pool) getOrCreateClient(t *lsv1alpha1.ResolvedTarget, m *clientConfig) (*Client, error) {
	if known := p.clients[m.key]; known != nil {
		p.used.MoveToFront(known)
		return toClient(known), nil
	}
	if former := p.bindings[getTargetKey(t)]; former != nil && former.uid == t.UID && former.client.canRotate(m) {
		c := former.client
		if err := c.rotate(m); err != nil {
			return nil, err
		}
		p.metrics.countEvent("rotated")
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
	p.metrics.countEvent("created")
	p.clients[c.key] = p.used.PushFront(c)
	return c, nil
}

// canRotate reports whether the client can replace its credentials by those in m. The server must be the same, and no
// other Target may use the client. canRotate does not check whether the old and the new credentials belong to the same
// user, because only the server knows that.
func (c *Client) canRotate(m *clientConfig) bool {
	return c.hasFixedCredentials && m.tokens == nil && c.serverID == m.serverID && len(c.targets) == 1
}

// bindTarget records that a Target uses the client in `now`. If the Target used another client before, bindTarget drops
// that client, unless it is pinned or another Target uses it.
func (p *Pool) bindTarget(id types.NamespacedName, now *binding) {
	former := p.bindings[id]
	p.bindings[id] = now
	now.client.targets[id] = struct{}{}
	if former == nil || former.client == now.client {
		return
	}
	delete(former.client.targets, id)
	if len(former.client.targets) == 0 && former.client.pins == 0 {
		p.removeClient(former.client)
	}
}

// evictUnused drops the least recently used clients until there are no more than MaxClients. It drops neither pinned
// clients nor the client `keep`.
func (p *Pool) evictUnused(keep *Client) {
	for element := p.used.Back(); element != nil && p.used.Len() > p.options.MaxClients; {
		c := toClient(element)
		element = element.Prev()
		if c != keep && c.pins == 0 {
			p.metrics.countEvent("evicted")
			p.removeClient(c)
		}
	}
}

// removeClient removes the client from the pool and ends its watches. Code that already uses the client can still send
// requests.
func (p *Pool) removeClient(c *Client) {
	p.used.Remove(p.clients[c.key])
	delete(p.clients, c.key)
	for id := range c.targets {
		delete(p.bindings, id)
	}
	c.cancel()
	c.transport.link.Load().transport.CloseIdleConnections()
}

func (p *Pool) releasePin(c *Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.pins--
	if c.ctx.Err() == nil && c.pins == 0 && len(c.targets) == 0 {
		p.removeClient(c)
		return
	}
	p.evictUnused(nil)
}

// forgetSecrets makes the Resolver drop the cached secrets of all Targets that use the client, so that these secrets
// are read again.
func (p *Pool) forgetSecrets(c *Client) {
	if p.options.Resolver == nil {
		return
	}
	p.mu.Lock()
	names := make([]types.NamespacedName, 0, len(c.targets))
	for name := range c.targets {
		names = append(names, name)
	}
	p.mu.Unlock()
	for _, name := range names {
		p.options.Resolver.Forget(name)
	}
}

// startGoroutine runs f in a goroutine and returns true. Close waits for the goroutine. After Close, startGoroutine
// does nothing and returns false.
func (p *Pool) startGoroutine(f func()) bool {
	p.life.Lock()
	defer p.life.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.running.Go(f)
	return true
}

func getTargetKey(t *lsv1alpha1.ResolvedTarget) types.NamespacedName {
	return client.ObjectKeyFromObject(t.Target)
}

func toClient(element *list.Element) *Client {
	c, _ := element.Value.(*Client)
	return c
}
