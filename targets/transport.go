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

// quickAnswer is the time that a target gets to respond. If a caller's deadline ends earlier, the missing response does
// not count as a failure of the target.
const quickAnswer = 5 * time.Second

// ErrClosed is returned by a Pool and its clients after Pool.Close.
var ErrClosed = errors.New("the pool of target clients is closed")

// transport is the transport of one client. It fails immediately while the target is down, adds the current credentials,
// and records whether the target has responded. Package limits limits the requests and responses.
type transport struct {
	target  *limits.Target
	health  *health
	refused func(*link, string)       // called after a 401, with the token that was sent
	count   func(method, code string) // counts a request in the metrics
	link    atomic.Pointer[link]
	closed  atomic.Bool
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.sendInTurn(req)
	if err != nil {
		t.count(req.Method, "none")
		return nil, err
	}
	t.count(req.Method, fmt.Sprintf("%dxx", resp.StatusCode/100))
	return resp, nil
}

// sendInTurn sends a request as soon as the limits allow it.
func (t *transport) sendInTurn(req *http.Request) (*http.Response, error) {
	if t.closed.Load() {
		return nil, refuse(req, ErrClosed)
	}
	done, err := t.target.Wait(req)
	if err != nil {
		return nil, refuse(req, err)
	}
	resp, err := t.send(req)
	done(resp, err)
	return resp, err
}

func (t *transport) send(req *http.Request) (*http.Response, error) {
	if err := t.health.admit(t.target.Clock.Now()); err != nil {
		return nil, refuse(req, err)
	}
	current := t.link.Load()
	token, err := current.token(req.Context())
	if err != nil {
		t.health.withdraw()
		return nil, refuse(req, err)
	}
	start := t.target.Clock.Now()
	pending := t.health.begin(t.target.Clock)
	limited := &limits.Transport{Target: t.target, Next: &authenticated{next: current.transport, token: token}, Observer: pending}
	resp, err := limited.RoundTrip(req)
	pending.Suspend()
	if err != nil {
		t.report(req, start, err)
		return nil, err
	}
	t.health.report(t.target.Clock.Now(), nil)
	if resp.StatusCode == http.StatusUnauthorized {
		t.refused(current, token)
	}
	return resp, nil
}

// report records a request that got no response. If the caller gave up, this counts as a failure of the target only if
// the deadline of the caller has passed and the caller has waited for at least quickAnswer.
func (t *transport) report(req *http.Request, start time.Time, err error) {
	now := t.target.Clock.Now()
	gaveUp := req.Context().Err()
	if budget.IsExhausted(err) {
		t.health.withdraw()
		return
	}
	if gaveUp == nil || errors.Is(gaveUp, context.DeadlineExceeded) && now.Sub(start) >= quickAnswer {
		t.health.report(now, err)
		return
	}
	t.health.withdraw()
}

// refuse closes the body of a request, as every RoundTripper must, and returns err.
func refuse(req *http.Request, err error) error {
	if req.Body != nil {
		return errors.Join(err, req.Body.Close())
	}
	return err
}
