// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is what a [Rule] does to a request. The zero value does nothing.
type Fault struct {
	what string
	// inflict applies the fault. It calls hit on the exchange if the fault had an effect, and miss if it did not.
	inflict func(*exchange) (*http.Response, error)
	// verb is the verb to which the fault applies. If it is empty, it applies to any request.
	verb string
	// remembers is set if the fault needs earlier responses. kills is set if no later request passes.
	remembers, kills bool
}

// String describes the fault.
func (f Fault) String() string {
	if f.inflict == nil {
		return noFault
	}
	return f.what
}

// noFault describes a rule without a fault.
const noFault = "count"

// LongestDelay limits every delay and wait of a fault. Longer ones are cut.
const LongestDelay = 30 * time.Second

// Values that Chaos uses.
const (
	chaosDelay  = 200 * time.Millisecond
	chaosEvents = 3
)

// InPlace returns a fault that responds to a request, or fails it, instead of the API server. The request has no
// effect. what describes the fault in reports. If f returns neither, the request is sent and the fault did not hit. The
// context of its request is done after [LongestDelay].
func InPlace(what string, f Injector) Fault {
	return Fault{what: what, inflict: func(x *exchange) (*http.Response, error) {
		ctx, cancel := x.bound(LongestDelay)
		defer cancel(nil)
		res, err := f(x.req.WithContext(ctx))
		if res == nil && err == nil {
			x.miss()
			return x.pass()
		}
		x.hit()
		return res, err
	}}
}

// Status returns a fault that responds with a status, as [Refuse] does.
func Status(code int, reason metav1.StatusReason) Fault {
	return InPlace(fmt.Sprintf("%d %s", code, reason), Refuse(code, reason))
}

// Conflict returns a fault that responds with 409, as if another client had changed the object. Use Times for repeated
// conflicts.
func Conflict() Fault { return Status(http.StatusConflict, metav1.StatusReasonConflict) }

// ExpiredToken returns a fault that responds with 401. With Match.All and Times, the client has no access for a while.
func ExpiredToken() Fault { return Status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized) }

// Denied returns a fault that responds with 403, as if an admission webhook had denied the request.
func Denied(webhook string) Fault {
	return InPlace("denied by webhook "+webhook, refuse(http.StatusForbidden, metav1.StatusReasonForbidden,
		fmt.Sprintf("admission webhook %q denied the request: injected by the test", webhook)))
}

// BrokenWebhook returns a fault that responds with 500, as if a mandatory admission webhook could not be reached.
func BrokenWebhook(webhook string) Fault {
	return InPlace("broken webhook "+webhook, refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		fmt.Sprintf("Internal error occurred: failed calling webhook %q: injected by the test", webhook)))
}

// errReset returns the error that a client gets when the other side resets the connection.
func errReset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// Reset returns a fault that breaks the connection before the request takes effect. client-go then retries reads by
// itself; writes fail.
func Reset() Fault {
	return InPlace("reset before it took effect", func(*http.Request) (*http.Response, error) { return nil, errReset() })
}

// LostAnswer returns a fault that lets the request take effect and breaks the connection before the response arrives.
// If the API server rejects the request, the fault misses and the response arrives.
func LostAnswer() Fault {
	return Fault{what: "reset after it took effect", inflict: loseAnswer}
}

func loseAnswer(x *exchange) (*http.Response, error) {
	res, err := x.pass()
	if err != nil || res.StatusCode >= http.StatusBadRequest {
		x.miss()
		return res, err
	}
	x.hit()
	return nil, errors.Join(errReset(), res.Body.Close())
}

// Timeout returns a fault that makes the client wait for the given time and then fails the request with a network
// timeout. The request has no effect.
func Timeout(after time.Duration) Fault {
	what := fmt.Sprintf("no answer within %s", after)
	return Fault{what: what, inflict: func(x *exchange) (*http.Response, error) {
		x.hit()
		if err := x.sleep(after, nil); err != nil {
			return nil, err
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}}
}

// Delay returns a fault that delays a request. A delayed watch begins late.
func Delay(d time.Duration) Fault {
	return Fault{what: fmt.Sprintf("%s late", d), inflict: func(x *exchange) (*http.Response, error) {
		if err := x.sleep(d, nil); err != nil {
			x.miss()
			return nil, err
		}
		x.hit()
		return x.pass()
	}}
}

// KillBefore returns a fault that cuts the network permanently, as if the process had been killed right before the
// request. Requests that begin later fail; requests in progress may take effect. [Network.Killed] reports when it
// happened.
func KillBefore() Fault {
	return Fault{what: "killed before it took effect", kills: true, inflict: func(x *exchange) (*http.Response, error) {
		x.killed()
		return nil, errKilled
	}}
}

// KillAfter is KillBefore for a kill right after the request took effect. Its response is lost.
func KillAfter() Fault {
	return Fault{what: "killed after it took effect", kills: true, inflict: func(x *exchange) (*http.Response, error) {
		defer x.killed()
		res, err := x.pass()
		if err == nil {
			err = errors.Join(errKilled, res.Body.Close())
		}
		return nil, err
	}}
}

// killed records that the network is cut.
func (x *exchange) killed() {
	x.hit()
	x.network.mu.Lock()
	defer x.network.mu.Unlock()
	x.network.closeKilled()
}

// sleep waits by the clock of the scenario. It returns an error if the request or the test ends, or stop is closed.
func (x *exchange) sleep(d time.Duration, stop <-chan struct{}) error {
	timer := x.network.clock.NewTimer(min(d, LongestDelay))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-x.req.Context().Done():
		return context.Cause(x.req.Context())
	case <-x.network.ended:
	case <-stop:
	}
	return net.ErrClosed
}

// bound limits the context of the request by the clock of the scenario.
func (x *exchange) bound(d time.Duration) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(x.req.Context())
	timer := x.network.clock.NewTimer(d)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(os.ErrDeadlineExceeded)
		case <-x.network.ended:
			cancel(net.ErrClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
