// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
	"github.com/deployerkit/deployerkit/targets/internal/pacer"
	"github.com/deployerkit/deployerkit/targets/internal/token"
)

const (
	redacted = "[redacted]"
	// minSecret is the minimum length of a token that is removed from texts. A shorter token is not removed, because
	// it is too short to be secret and may be part of ordinary words.
	minSecret = 8
	// quickAnswer is the time that a target gets to respond. If a caller's deadline ends earlier, the missing response
	// does not count as a failure of the target.
	quickAnswer = 5 * time.Second
	// maxErrorBody is the maximum number of bytes that are read from an error response.
	maxErrorBody = 256 << 10
)

// errNoAnswer is the cancellation cause if the target does not respond to a request in time.
var errNoAnswer = errors.New("no response in time")

// ErrClosed is returned by a Pool and its clients after Pool.Close.
var ErrClosed = errors.New("the pool of target clients is closed")

// link contains one set of credentials and the connections that were made with these credentials. A rotation creates a
// new link, so that no request uses a connection that was authenticated with an old certificate.
type link struct {
	transport *http.Transport
	fixed     string        // a bearer token that does not change; empty if `tokens` is set or a client certificate is used
	tokens    *token.Source // nil if the credentials do not change
}

// newLink creates a link. cfg is the REST config that access.config returned. The link has its own transport, because
// client-go never releases the transports that it creates.
func newLink(cfg *rest.Config, tokens *token.Source) (*link, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.ServerName, InsecureSkipVerify: cfg.Insecure}
	if len(cfg.CAData) > 0 {
		conf.RootCAs = x509.NewCertPool()
		conf.RootCAs.AppendCertsFromPEM(cfg.CAData)
	}
	if len(cfg.CertData) > 0 {
		pair, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData)
		if err != nil {
			return nil, fault("kubeconfig", "has a client certificate that cannot be used")
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{
		Proxy: cfg.Proxy, DialContext: cfg.Dial, TLSClientConfig: conf, DisableCompression: cfg.DisableCompression,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second,
	})
	return &link{transport: transport, fixed: cfg.BearerToken, tokens: tokens}, nil
}

func (l *link) token(ctx context.Context) (string, error) {
	if l.tokens == nil {
		return l.fixed, nil
	}
	created, err := l.tokens.Token(ctx)
	if errors.Is(err, token.ErrAccepted) {
		return "", fault("oidcConfig.audience", "is an audience of Landscaper's API server, so the token would also be valid there")
	}
	return created, err
}

// wire is the transport of one client. It adds the current credentials to requests, cancels requests that get no
// response in time, fails immediately while the target is down, and detects rejected credentials.
type wire struct {
	health  *health
	clk     clock.PassiveClock
	timeout time.Duration
	refused func(*link, string)       // called after a 401, with the token that was sent
	count   func(method, code string) // counts a request in the metrics
	answers *answers
	slots   chan struct{} // one element for each request in progress
	watches *pacer.Pacer
	link    atomic.Pointer[link]
	closed  atomic.Bool
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.send(req)
	if isWatch(req) && (err != nil || resp.StatusCode != http.StatusOK) {
		now := w.clk.Now()
		w.watches.End(pacer.WatchOf(req), now, now, req.Context().Err() == nil)
	}
	if err != nil {
		w.count(req.Method, "none")
		return nil, err
	}
	w.count(req.Method, fmt.Sprintf("%dxx", resp.StatusCode/100))
	return resp, nil
}

func (w *wire) send(req *http.Request) (*http.Response, error) {
	if w.closed.Load() {
		return nil, refuse(req, ErrClosed)
	}
	leave, err := w.enter(req)
	if err != nil {
		return nil, refuse(req, err)
	}
	defer leave()
	if err := w.health.admit(w.clk.Now()); err != nil {
		return nil, refuse(req, err)
	}
	current := w.link.Load()
	token, err := current.token(req.Context())
	if err != nil {
		w.health.withdraw()
		return nil, refuse(req, err)
	}
	start := w.clk.Now()
	turn := w.health.begin(w.clk)
	resp, err := w.exchange(current.transport, req, token, turn)
	turn.pause()
	if err != nil {
		w.report(req, start, err)
		return nil, err
	}
	w.health.report(w.clk.Now(), nil)
	if resp.StatusCode == http.StatusUnauthorized {
		w.refused(current, token)
	}
	return resp, nil
}

// enter waits until the request may be sent. A watch waits for the Pacer, which delays watches that repeatedly end
// early. Any other request waits until fewer than Limits.Requests requests are in progress.
func (w *wire) enter(req *http.Request) (leave func(), err error) {
	if isWatch(req) {
		return func() {}, w.watches.Wait(req.Context(), pacer.WatchOf(req), w.clk.Now())
	}
	select {
	case w.slots <- struct{}{}:
		return func() { <-w.slots }, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// exchange sends one request and returns when its response, or the beginning of a watch, has arrived.
func (w *wire) exchange(next http.RoundTripper, req *http.Request, token string, turn *turn) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(w.timeout, func() { cancel(errNoAnswer) })
	end := func() { timer.Stop(); cancel(nil) }
	out := req.Clone(ctx)
	limitFormats(out)
	out.Header.Del("Authorization")
	if token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := next.RoundTrip(out)
	if err == nil {
		resp.Body = &ended{ReadCloser: resp.Body, end: end}
		tame(resp, token)
		err = w.receive(ctx, cancel, out, resp, token, turn)
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), errNoAnswer) && !budget.IsExhausted(err) {
			err = fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		end()
		return nil, err
	}
	if isWatch(req) {
		timer.Stop() // the events of the watch have no time limit
	}
	return resp, nil
}

// receive reads a response and enforces the limits. For a watch, it does not read the events. The client reads them
// later. A response to a watch with another status than 200 contains no events: client-go reads it completely.
func (w *wire) receive(ctx context.Context, cancel context.CancelCauseFunc, req *http.Request, resp *http.Response, token string, turn *turn) error {
	if !isWatch(req) || resp.StatusCode != http.StatusOK {
		return w.answers.read(ctx, cancel, req, resp, token, turn)
	}
	watch, began := pacer.WatchOf(req), w.clk.Now()
	return w.answers.watch(req, resp, w.clk, func(failed bool, why error) {
		now := w.clk.Now()
		w.watches.End(watch, began, now, failed)
		if _, over := errors.AsType[*LimitError](why); over {
			w.health.trip(now, why)
		}
	})
}

// tame limits how long client-go waits before a retry, and removes the token from headers, which client-go may log.
func tame(resp *http.Response, token string) {
	for _, values := range resp.Header {
		for i := range values {
			values[i] = hide(token, values[i])
		}
	}
	if after := resp.Header.Get("Retry-After"); after != "" && after != "0" {
		resp.Header.Set("Retry-After", "1")
	}
}

// report records a request that got no response. If the caller gave up, this counts as a failure of the target only if
// the deadline of the caller has passed and the caller has waited for at least quickAnswer.
func (w *wire) report(req *http.Request, start time.Time, err error) {
	now := w.clk.Now()
	gaveUp := req.Context().Err()
	if budget.IsExhausted(err) {
		w.health.withdraw()
		return
	}
	if gaveUp == nil || errors.Is(gaveUp, context.DeadlineExceeded) && now.Sub(start) >= quickAnswer {
		w.health.report(now, err)
		return
	}
	w.health.withdraw()
}

func isWatch(req *http.Request) bool {
	query := req.URL.Query()
	return query.Get("watch") == "true" || query.Get("watch") == "1"
}

// refuse closes the body of a request, as every RoundTripper must, and returns err.
func refuse(req *http.Request, err error) error {
	if req.Body != nil {
		return errors.Join(err, req.Body.Close())
	}
	return err
}

func hide(token, text string) string {
	if len(token) < minSecret {
		return text
	}
	return strings.ReplaceAll(text, token, redacted)
}

// ended is the body of a response. Closing it stops the timer of the request.
type ended struct {
	io.ReadCloser
	end func()
}

func (e *ended) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}
