// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/calls"
	"github.com/deployerkit/deployerkit/internal/rewatch"
	"github.com/deployerkit/deployerkit/targets/internal/budget"
	"github.com/deployerkit/deployerkit/targets/internal/limits"
)

// credentialsReadInterval is the minimum time between two reads of the same secret while the target rejects the
// credentials in it.
const credentialsReadInterval = 10 * time.Second

// Client is the client of one target. All deploy items of the target share one Client, and it stays the same when
// credentials change. The RESTMapper of a Client discovers the kinds of the target once. If a kind is unknown, it
// discovers the kinds again, but at most once per second. If the discovery of a group fails, its kinds stay known.
// After a call of meta.MaybeResetRESTMapper, the next unknown kind causes a discovery immediately. There is no
// client-side rate limit, so the caller must limit concurrency. A Client is safe for concurrent use. Do not use it for
// longer than one run of a deploy item, unless you call Pin.
type Client struct {
	client.Client

	pool      *Pool
	cfg       *rest.Config // contains no credentials
	http      *http.Client
	transport *transport
	mapper    *mapper
	ctx       context.Context // canceled when the client leaves the pool
	cancel    context.CancelFunc

	// The lock of the pool guards the fields key, targets and pins.
	key, serverID       string
	targets             map[types.NamespacedName]struct{} // the Target objects that use the client
	pins                int
	hasFixedCredentials bool // the content of the Targets contains the credentials

	mu         sync.Mutex
	connected  bool
	connecting context.Context // context of the current attempt to connect; done after the attempt or GetTimeout
	forgotten  time.Time       // the last time at which a 401 removed the secrets from the cache of the Resolver
}

// Config returns a REST config for other kinds of clients, such as metadata or dynamic clients. The config contains no
// credentials, because its transport adds the current credentials to each request. The caller may change the returned
// config, which is a copy.
func (c *Client) Config() *rest.Config { return rest.CopyConfig(c.cfg) }

// HTTPClient returns the HTTP client, for constructors like metadata.NewForConfigAndClient.
func (c *Client) HTTPClient() *http.Client { return c.http }

// Done returns a channel that is closed when the client leaves its pool. The watches of the client then end. A client
// leaves the pool if it is the least recently used client of a full pool, if its Target now uses another client, or if
// the pool is closed.
func (c *Client) Done() <-chan struct{} { return c.ctx.Done() }

// Pin keeps the client in its pool until the function `release` is called, for example while watches use the client.
// Each call of Pin returns its own `release`. Further calls of `release` do nothing. If `ok` is false, the client has
// already left the pool, and the caller must get another client.
func (c *Client) Pin() (release func(), ok bool) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.ctx.Err() != nil {
		return func() {}, false
	}
	c.pins++
	return sync.OnceFunc(func() { c.pool.releasePin(c) }), true
}

// InvalidateCredentials reports that the target rejected the credentials. If the client uses tokens of a service
// account, the client creates a new token for the next request. If the credentials come from a secret, the secret is
// read again when the Target is resolved the next time. A response with the status 401 has the same effect, except that
// it causes at most one read of the secret every ten seconds.
func (c *Client) InvalidateCredentials() {
	if current := c.transport.link.Load(); current.tokens != nil {
		current.tokens.Drop()
	}
	c.pool.forgetSecrets(c)
}

// handleUnauthorized handles a response with code 401.
func (c *Client) handleUnauthorized(l *credentialLink, token string) {
	c.pool.metrics.countEvent("unauthorized")
	if l.tokens != nil {
		l.tokens.Forget(token)
		return
	}
	now := c.pool.options.Clock.Now()
	c.mu.Lock()
	again := c.transport.link.Load() != l || !c.forgotten.IsZero() && now.Sub(c.forgotten) < credentialsReadInterval
	if !again {
		c.forgotten = now
	}
	c.mu.Unlock()
	if !again {
		c.pool.forgetSecrets(c)
	}
}

// newClient creates a client. It sends no request to the target.
func (p *Pool) newClient(m *clientConfig, namespace string) (*Client, error) {
	l, err := newLink(m.access.newRESTConfig(p.options.Policy), m.tokens)
	if err != nil {
		return nil, err
	}
	c := &Client{pool: p, key: m.key, serverID: m.serverID, hasFixedCredentials: m.tokens == nil, targets: map[types.NamespacedName]struct{}{}}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	c.transport = &transport{
		health: &healthTracker{minPause: p.options.MinPause, maxPause: p.options.MaxPause}, handleUnauthorized: c.handleUnauthorized, countRequest: p.metrics.countRequest,
		target: limits.NewTarget(limits.Options{
			Limits: limits.Limits(p.options.Limits), Memory: p.memory, Owner: budget.Owner{Namespace: namespace, Target: m.key},
			Path: m.access.getPath(), Timeout: p.options.RequestTimeout, Clock: p.options.Clock, CountExceeded: p.metrics.countExceeded,
		}),
	}
	c.transport.link.Store(l)
	c.cfg = m.access.newRESTConfig(p.options.Policy)
	c.cfg.BearerToken, c.cfg.TLSClientConfig, c.cfg.Dial, c.cfg.Proxy = "", rest.TLSClientConfig{}, nil, nil
	c.cfg.Transport = calls.Transport(calls.Target)(c.transport)
	if p.options.WrapTransport != nil {
		c.cfg.Wrap(p.options.WrapTransport)
	}
	c.cfg.Wrap(rewatch.Wrap)
	if err := c.build(); err != nil {
		c.cancel()
		return nil, fmt.Errorf("create client: %w", err)
	}
	return c, nil
}

func (c *Client) build() error {
	var err error
	if c.http, err = rest.HTTPClientFor(c.cfg); err != nil {
		return err
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(c.cfg, c.http)
	if err != nil {
		return err
	}
	c.mapper = &mapper{ctx: c.ctx, disco: &discoveryClient{DiscoveryClient: disco, limits: &c.pool.options.Limits, countExceeded: c.pool.metrics.countExceeded}, clk: c.pool.options.Clock, timeout: c.pool.options.ConnectTimeout, countDiscovery: c.pool.metrics.countDiscovery, kinds: &c.pool.kinds}
	create := func() (client.Client, error) {
		return client.New(c.cfg, client.Options{HTTPClient: c.http, Scheme: c.pool.options.Scheme, Mapper: c.mapper})
	}
	plain, err := create()
	if err != nil {
		return err
	}
	limited := limits.NewClient(plain, &c.transport.target.Limits, c.pool.metrics.countExceeded)
	c.mapper.changed = func() {
		if renewed, err := create(); err == nil { // the arguments are the same, so there is no error
			limited.SetSender(renewed)
		}
	}
	c.Client = limited
	return nil
}

// rotate replaces the credentials. Requests in progress continue with the old credentials.
func (c *Client) rotate(m *clientConfig) error {
	l, err := newLink(m.access.newRESTConfig(c.pool.options.Policy), m.tokens)
	if err != nil {
		return err
	}
	old := c.transport.link.Swap(l)
	old.transport.CloseIdleConnections()
	c.transport.health.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten = time.Time{}
	return nil
}

// waitUntilConnected waits until the target has responded once. If the target is down, or does not respond within
// PoolOptions.GetTimeout, waitUntilConnected returns an error, so that the target does not block workers.
func (c *Client) waitUntilConnected(ctx context.Context) error {
	why, due := c.transport.health.checkDown(c.pool.options.Clock.Now())
	attempt := c.ensureConnecting(why == nil, due)
	if why != nil {
		return why
	}
	if attempt != nil {
		select {
		case <-attempt.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return c.checkConnected()
}

// checkConnected returns nil if the target is connected and up.
func (c *Client) checkConnected() error {
	if why, _ := c.transport.health.checkDown(c.pool.options.Clock.Now()); why != nil {
		return why
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pool.ctx.Err() != nil:
		return ErrClosed
	case !c.connected:
		return &UnreachableError{RetryAfter: c.pool.options.GetTimeout}
	}
	return nil
}

// ensureConnecting returns the context of the current attempt to connect to the target. If no attempt is in progress
// but the next one is due, it starts that attempt. It returns nil if there is nothing to wait for.
func (c *Client) ensureConnecting(up, due bool) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.connected && up {
		return nil
	}
	if c.connecting == nil && (due || !c.connected && up) {
		ctx, done := context.WithTimeout(c.ctx, c.pool.options.GetTimeout)
		if !c.pool.startGoroutine(func() { c.connect(done) }) {
			done()
			return nil
		}
		c.connecting = ctx
	}
	return c.connecting
}

// connect sends a request to the target, independently of the caller's deadline. Until the first discovery has
// succeeded, the request is a discovery. After that, it is a ping.
func (c *Client) connect(done context.CancelFunc) {
	defer done()
	l := c.transport.link.Load()
	c.mu.Lock()
	connected := c.connected
	c.mu.Unlock()
	var err error
	if connected {
		err = c.requestVersion()
	} else if err = c.mapper.discover(c.ctx); err == nil {
		c.transport.health.markDiscovered()
	}
	c.recordConnectError(l, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected = connected || err == nil
	c.connecting = nil
}

// recordConnectError marks the target as down if an attempt to connect has failed. It ignores a failure if the
// credentials were replaced during the attempt, if the target is already marked as down and the request was therefore
// not sent, or if the deployer had no memory for the response in time.
func (c *Client) recordConnectError(l *credentialLink, err error) {
	if _, busy := errors.AsType[*UnreachableError](err); err == nil || busy || budget.IsExhausted(err) || c.transport.link.Load() != l {
		return
	}
	c.pool.metrics.countEvent("unreachable")
	c.transport.health.markDown(c.pool.options.Clock.Now(), c.redactError(l, err))
}

// requestVersion sends a request to the target. Any complete response counts as success.
func (c *Client) requestVersion() error {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.pool.options.ConnectTimeout, limits.ErrNoResponse)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.cfg.Host, "/")+"/version", http.NoBody)
	if err != nil {
		return errors.New("make request")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, limits.MaxErrorSize))
	return errors.Join(err, resp.Body.Close())
}

// redactError removes the token from an error, because a hostile server may have sent the token back in its response.
func (c *Client) redactError(l *credentialLink, err error) error {
	token := l.fixedToken
	if l.tokens != nil {
		token, _ = l.tokens.GetCurrent()
	}
	if text := redactToken(token, err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}
