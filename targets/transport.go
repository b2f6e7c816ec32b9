// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
	"github.com/deployerkit/deployerkit/targets/internal/limits"
)

// minResponseTime is the time that a target gets to respond. If a caller's deadline ends earlier, the missing response
// does not count as a failure of the target.
const minResponseTime = 5 * time.Second

// ErrClosed is returned by a Pool and its clients after Pool.Close.
var ErrClosed = errors.New("the pool of target clients is closed")

// transport is the transport of one client. It fails immediately while the target is down, adds the current
// credentials, and records whether the target has responded. Package limits limits the requests and responses.
type transport struct {
	target             *limits.Target
	health             *healthTracker
	handleUnauthorized func(*credentialLink, string) // called after a 401, with the token that was sent
	countRequest       func(method, code string)     // counts a request in the metrics
	link               atomic.Pointer[credentialLink]
	isClosed           atomic.Bool
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.sendInTurn(req)
	if err != nil {
		t.countRequest(req.Method, "none")
		return nil, err
	}
	t.countRequest(req.Method, fmt.Sprintf("%dxx", resp.StatusCode/100))
	return resp, nil
}

// sendInTurn sends a request as soon as the limits allow it.
func (t *transport) sendInTurn(req *http.Request) (*http.Response, error) {
	if t.isClosed.Load() {
		return nil, closeRequest(req, ErrClosed)
	}
	done, err := t.target.Wait(req)
	if err != nil {
		return nil, closeRequest(req, err)
	}
	resp, err := t.send(req)
	done(resp, err)
	return resp, err
}

func (t *transport) send(req *http.Request) (*http.Response, error) {
	if err := t.health.acquire(t.target.Clock.Now()); err != nil {
		return nil, closeRequest(req, err)
	}
	current := t.link.Load()
	current.idle.Reset(idleConnTimeout)
	token, err := current.getToken(req.Context())
	if err != nil {
		t.health.release()
		return nil, closeRequest(req, err)
	}
	start := t.target.Clock.Now()
	pending := t.health.startRequest(t.target.Clock)
	limited := &limits.Transport{Target: t.target, Next: &tokenTransport{next: current.transport, token: token}, Observer: pending}
	resp, err := limited.RoundTrip(req)
	pending.Suspend()
	if err != nil {
		t.recordError(req, start, err)
		return nil, err
	}
	t.health.recordResult(t.target.Clock.Now(), nil)
	if resp.StatusCode == http.StatusUnauthorized {
		t.handleUnauthorized(current, token)
	}
	return resp, nil
}

// recordError records a request that got no response. If the caller gave up, this counts as a failure of the target
// only if the deadline of the caller has passed and the caller has waited for at least minResponseTime.
func (t *transport) recordError(req *http.Request, start time.Time, err error) {
	now := t.target.Clock.Now()
	gaveUp := req.Context().Err()
	if budget.IsExhausted(err) {
		t.health.release()
		return
	}
	if gaveUp == nil || errors.Is(gaveUp, context.DeadlineExceeded) && now.Sub(start) >= minResponseTime {
		t.health.recordResult(now, err)
		return
	}
	t.health.release()
}

// closeRequest closes the body of a request, as every RoundTripper must, and returns err.
func closeRequest(req *http.Request, err error) error {
	if req.Body != nil {
		return errors.Join(err, req.Body.Close())
	}
	return err
}
