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
	what string
	// inflict applies the fault to a request, and returns the response for the client. It may send, delay or replace the
	// request. It must call exchange.hit or exchange.miss.
	inflict func(*exchange) (*http.Response, error)
	// verb is the verb of the requests to which the fault can be applied. If verb is empty, the fault can be applied to
	// any request.
	verb string
	// remembers is true if the fault needs earlier responses. kills is true if all requests after the fault must fail.
	remembers, kills bool
}

// String describes the fault.
func (f Fault) String() string {
	if f.inflict == nil {
		return noFault
	}
	return f.what
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

// InPlace returns a fault that calls f instead of sending the request to the API server. The context of the request
// that f receives is done after [LongestDelay]. If f returns neither a response nor an error, the request is sent, and
// the fault misses. The parameter `what` describes the fault in reports.
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

// Status returns a fault that responds to a request with a failure status. See [Refuse].
func Status(code int, reason metav1.StatusReason) Fault {
	return InPlace(fmt.Sprintf("%d %s", code, reason), Refuse(code, reason))
}

// Conflict returns a fault that responds with 409, as if another client had changed the object. For several conflicts
// in a row, set Rule.Times.
func Conflict() Fault { return Status(http.StatusConflict, metav1.StatusReasonConflict) }

// ExpiredToken returns a fault that responds with 401. To make the first requests of a client fail, including
// discovery, set Match.All in the rule, and set Times to the number of these requests.
func ExpiredToken() Fault { return Status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized) }

// Denied returns a fault that responds with 403, as if an admission webhook had denied the request.
func Denied(webhook string) Fault {
	return InPlace("denied by webhook "+webhook, refuse(http.StatusForbidden, metav1.StatusReasonForbidden,
		fmt.Sprintf("admission webhook %q denied the request: injected by the test", webhook)))
}

// BrokenWebhook returns a fault that responds with 500, as if the API server could not reach an admission webhook with
// failurePolicy Fail.
func BrokenWebhook(webhook string) Fault {
	return InPlace("broken webhook "+webhook, refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		fmt.Sprintf("Internal error occurred: failed calling webhook %q: injected by the test", webhook)))
}

// errReset returns the error that a client receives when the server resets the connection.
func errReset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// Reset returns a fault that breaks the connection before the request takes effect. A read still succeeds, because
// client-go retries it. A write fails.
func Reset() Fault {
	return InPlace("reset before it took effect", func(*http.Request) (*http.Response, error) { return nil, errReset() })
}

// LostAnswer returns a fault that sends the request, and breaks the connection before the response arrives. If the API
// server rejects the request, the fault misses, and the client gets the response.
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

// Timeout returns a fault that does not send the request. The client waits for the given time, and then gets a network
// timeout.
func Timeout(after time.Duration) Fault {
	what := fmt.Sprintf("no response within %s", after)
	return Fault{what: what, inflict: func(x *exchange) (*http.Response, error) {
		x.hit()
		if err := x.sleep(after, nil); err != nil {
			return nil, err
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}}
}

// Delay returns a fault that delays a request. A delayed watch starts late.
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
// request. The request and all later requests fail. Other requests that are already in progress may take effect. When
// the network is cut, the channel that [Network.Killed] returns is closed.
func KillBefore() Fault {
	return Fault{what: "killed before it took effect", kills: true, inflict: func(x *exchange) (*http.Response, error) {
		x.killed()
		return nil, errKilled
	}}
}

// KillAfter returns a fault that cuts the network permanently, as if the process had been killed right after the
// request took effect. The response is lost. All later requests fail. Other requests that are already in progress may
// take effect.
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

// killed records that the fault has hit, and closes the channel of Network.Killed.
func (x *exchange) killed() {
	x.hit()
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

// bound returns the context of the request with a time limit. The limit is reached when the clock of the scenario has
// advanced by d.
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
