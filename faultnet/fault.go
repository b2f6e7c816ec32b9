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

// Fault is what a [Rule] does to a request. If a fault has an effect on a request, it hits this request. Otherwise it
// misses. The zero Fault has no effect.
type Fault struct {
	description string
	// apply applies the fault to a request, and returns the response for the client. It may send, delay or replace the
	// request. It must call exchange.recordHit or exchange.recordMiss.
	apply func(*exchange) (*http.Response, error)
	// verb is the verb of the requests to which the fault can be applied. If verb is empty, the fault can be applied to
	// any request.
	verb string
	// needsHistory is true if the fault needs earlier responses. kills is true if all requests after the fault must fail.
	needsHistory, killsNetwork bool
}

// String describes the fault.
func (f Fault) String() string {
	if f.apply == nil {
		return noFault
	}
	return f.description
}

// noFault is the description of the zero Fault. A rule with the zero Fault only counts requests.
const noFault = "count"

// LongestDelay is the maximum time for which a fault delays a request. A longer delay is shortened to this time.
const LongestDelay = 30 * time.Second

// chaosDelay is how long the faults of Chaos delay a request or a watch. chaosEvents is the number of events after
// which Chaos cuts a watch.
const (
	chaosDelay  = 200 * time.Millisecond
	chaosEvents = 3
)

// NewFault returns a fault that calls f instead of sending the request to the API server. Reports describe it as what.
// The context of the request that f receives is done after [LongestDelay]. If f returns neither a response nor an
// error, the request is sent, and the fault misses.
func NewFault(what string, f Injector) Fault {
	return Fault{description: what, apply: func(x *exchange) (*http.Response, error) {
		ctx, cancel := x.withTimeout(LongestDelay)
		defer cancel(nil)
		res, err := f(x.req.WithContext(ctx))
		if res == nil && err == nil {
			x.recordMiss()
			return x.send()
		}
		x.recordHit()
		return res, err
	}}
}

// Status returns a fault that responds to a request with a failure status. See [ReturnStatus].
func Status(code int, reason metav1.StatusReason) Fault {
	return NewFault(fmt.Sprintf("%d %s", code, reason), ReturnStatus(code, reason))
}

// Conflict returns a fault that responds with 409, as if another client had changed the object. For several conflicts
// in a row, set Rule.Times.
func Conflict() Fault { return Status(http.StatusConflict, metav1.StatusReasonConflict) }

// TokenExpired returns a fault that responds with 401. To make the first requests of a client fail, including
// discovery, set Match.All in the rule, and set Times to the number of these requests.
func TokenExpired() Fault { return Status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized) }

// WebhookDenied returns a fault that responds with 403, as if an admission webhook had denied the request.
func WebhookDenied(webhook string) Fault {
	return NewFault("denied by webhook "+webhook, returnStatus(http.StatusForbidden, metav1.StatusReasonForbidden,
		fmt.Sprintf("admission webhook %q denied the request: injected by the test", webhook)))
}

// WebhookFailed returns a fault that responds with 500, as if the API server could not reach an admission webhook with
// failurePolicy Fail.
func WebhookFailed(webhook string) Fault {
	return NewFault("broken webhook "+webhook, returnStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		fmt.Sprintf("Internal error occurred: failed calling webhook %q: injected by the test", webhook)))
}

// errReset returns the error that a client receives when the server resets the connection.
func errReset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// Reset returns a fault that breaks the connection before the request takes effect. A read still succeeds, because
// client-go retries it. A write fails.
func Reset() Fault {
	return NewFault("reset before it took effect", func(*http.Request) (*http.Response, error) { return nil, errReset() })
}

// DropResponse returns a fault that sends the request, and breaks the connection before the response arrives. If the
// API server rejects the request, the fault misses, and the client gets the response.
func DropResponse() Fault {
	return Fault{description: "reset after it took effect", apply: dropResponse}
}

func dropResponse(x *exchange) (*http.Response, error) {
	res, err := x.send()
	if err != nil || res.StatusCode >= http.StatusBadRequest {
		x.recordMiss()
		return res, err
	}
	x.recordHit()
	return nil, errors.Join(errReset(), res.Body.Close())
}

// Timeout returns a fault that does not send the request. The client waits for the given time, and then gets a network
// timeout.
func Timeout(after time.Duration) Fault {
	what := fmt.Sprintf("no response within %s", after)
	return Fault{description: what, apply: func(x *exchange) (*http.Response, error) {
		x.recordHit()
		if err := x.sleep(after, nil); err != nil {
			return nil, err
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}}
}

// Delay returns a fault that delays a request. A delayed watch starts late.
func Delay(d time.Duration) Fault {
	return Fault{description: fmt.Sprintf("%s late", d), apply: func(x *exchange) (*http.Response, error) {
		if err := x.sleep(d, nil); err != nil {
			x.recordMiss()
			return nil, err
		}
		x.recordHit()
		return x.send()
	}}
}

// KillBefore returns a fault that cuts the network permanently, as if the process had been killed right before the
// request. The request and all later requests fail. Other requests that are already in progress may take effect. When
// the network is cut, the channel that [Network.Killed] returns is closed.
func KillBefore() Fault {
	return Fault{description: "killed before it took effect", killsNetwork: true, apply: func(x *exchange) (*http.Response, error) {
		x.recordKill()
		return nil, errKilled
	}}
}

// KillAfter returns a fault that cuts the network permanently, as if the process had been killed right after the
// request took effect. The response is lost. All later requests fail. Other requests that are already in progress may
// take effect.
func KillAfter() Fault {
	return Fault{description: "killed after it took effect", killsNetwork: true, apply: func(x *exchange) (*http.Response, error) {
		defer x.recordKill()
		res, err := x.send()
		if err == nil {
			err = errors.Join(errKilled, res.Body.Close())
		}
		return nil, err
	}}
}

// recordKill records that the fault has hit, and closes the channel of Network.Killed.
func (x *exchange) recordKill() {
	x.recordHit()
	x.network.mu.Lock()
	defer x.network.mu.Unlock()
	x.network.closeKilled()
}

// sleep waits until the clock of the scenario has advanced by d. It returns an error if the request or the test ends
// before that, or if the channel `stop` is closed.
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

// withTimeout returns the context of the request with a time limit. The limit is reached when the clock of the scenario
// has advanced by d.
func (x *exchange) withTimeout(d time.Duration) (context.Context, context.CancelCauseFunc) {
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
