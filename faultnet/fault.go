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
	// inflict does it. It tells the exchange whether it hit or missed.
	inflict func(*exchange) (*http.Response, error)
	// verb is what it is for; empty: any request.
	verb string
	// remembers: it needs earlier answers. kills: nothing gets through after this request.
	remembers, kills bool
}

// String says what the fault does.
func (f Fault) String() string {
	if f.inflict == nil {
		return noFault
	}
	return f.what
}

// noFault is what a rule without a fault does.
const noFault = "count"

// LongestDelay bounds every delay and every wait of a fault; longer ones are cut.
const LongestDelay = 30 * time.Second

// What Chaos uses.
const (
	chaosDelay  = 200 * time.Millisecond
	chaosEvents = 3
)

// InPlace is a fault that answers or fails a request in the API server's
// place: it does not take effect. what is for the report. If f answers nothing,
// the request goes on and the fault did not hit. The context of its request ends after
// [LongestDelay].
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

// Status answers with a status, as [Refuse] does.
func Status(code int, reason metav1.StatusReason) Fault {
	return InPlace(fmt.Sprintf("%d %s", code, reason), Refuse(code, reason))
}

// Conflict answers with 409, as if another client had changed the object. With Times it is a storm.
func Conflict() Fault { return Status(http.StatusConflict, metav1.StatusReasonConflict) }

// ExpiredToken answers with 401. With Match.All and Times, the client has lost its access for a while.
func ExpiredToken() Fault { return Status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized) }

// Denied answers with 403 as if an admission webhook had said no.
func Denied(webhook string) Fault {
	return InPlace("denied by webhook "+webhook, refuse(http.StatusForbidden, metav1.StatusReasonForbidden,
		fmt.Sprintf("admission webhook %q denied the request: injected by the test", webhook)))
}

// BrokenWebhook answers with 500 as if an admission webhook that must be asked could not be reached.
func BrokenWebhook(webhook string) Fault {
	return InPlace("broken webhook "+webhook, refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		fmt.Sprintf("Internal error occurred: failed calling webhook %q: injected by the test", webhook)))
}

// errReset is what the client sees of a connection that the other side reset.
func errReset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// Reset breaks the connection before the request takes effect. client-go
// repeats reads after that by itself; writes fail.
func Reset() Fault {
	return InPlace("reset before it took effect", func(*http.Request) (*http.Response, error) { return nil, errReset() })
}

// LostAnswer lets the request take effect and breaks the connection before its
// answer arrives. What the API server refuses has no effect: the fault misses, and the answer arrives.
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

// Timeout lets the client wait in vain for the time that is given and then fails the request with a timeout
// of the network. It does not take effect.
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

// Delay lets the request wait before it goes to the API server. A watch begins late.
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

// KillBefore cuts the network for good, as if the process had been killed
// right before the request. Nothing that begins later gets through; what is on
// its way already may. [Network.Killed] tells when.
func KillBefore() Fault {
	return Fault{what: "killed before it took effect", kills: true, inflict: func(x *exchange) (*http.Response, error) {
		x.killed()
		return nil, errKilled
	}}
}

// KillAfter is KillBefore for a kill right after the request took effect: its answer is lost.
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

// killed notes that the end has come.
func (x *exchange) killed() {
	x.hit()
	x.network.mu.Lock()
	defer x.network.mu.Unlock()
	x.network.closeKilled()
}

// sleep waits by the clock of the scenario. Errors: the request, the test or what stop belongs to has ended.
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

// bound gives the context of the request an end by the clock of the scenario.
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
