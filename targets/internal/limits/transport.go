// SPDX-License-Identifier: Apache-2.0

// Package limits limits what the responses of targets can take from the deployer. A Transport limits the time until a
// response has arrived, the size and depth of the response, the memory for decoding it, and the rate of the events of a
// watch. A Client reads lists in pages, and reserves the memory for a response until it has been decoded.
package limits

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
	"github.com/deployerkit/deployerkit/targets/internal/pacer"
)

// Limits contains the limits, without defaults. targets.Limits describes the fields.
type Limits struct {
	Object, Page, PageSize, List, Discovery int64
	Groups, Requests                        int
	Reading, Decoding                       int64
	WatchObjects, WatchEvents               int
	WatchBytes                              int64
}

// Memory is the memory that the responses of all targets share.
type Memory struct {
	// Reading is for large responses that are being read.
	Reading *budget.Budget
	// Decoding is for responses that are being decoded.
	Decoding *budget.Budget
}

// NewMemory returns a Memory of which no part is in use.
func NewMemory(l Limits) Memory {
	return Memory{
		Reading:  budget.New("read", getHint("Reading"), l.Reading),
		Decoding: budget.New("decoded", getHint("Decoding"), l.Decoding),
	}
}

// Target contains what all requests to one target have in common.
type Target struct {
	Options
	requests chan struct{} // one element for each request in progress, not counting watches
	watches  *pacer.Pacer
}

// Options configures a Target.
type Options struct {
	Limits Limits
	Memory Memory
	Owner  budget.Owner
	// Path is the path in the URL of the server. All API paths begin with it.
	Path string
	// Timeout limits the time until a response, or the beginning of a watch, has arrived.
	Timeout time.Duration
	Clock   clock.PassiveClock
	// CountExceeded counts a response that has exceeded a limit.
	CountExceeded func(limit string)
}

// NewTarget returns a Target without requests in progress.
func NewTarget(o Options) *Target {
	return &Target{Options: o, requests: make(chan struct{}, o.Limits.Requests), watches: pacer.New()}
}

// Wait waits until a request may be sent. A watch waits for the Pacer, which delays watches that repeatedly end early.
// Any other request waits until fewer than Limits.Requests requests are in progress. The caller must call `done` with
// the response or the error.
func (t *Target) Wait(req *http.Request) (done func(*http.Response, error), err error) {
	if !isWatch(req) {
		select {
		case t.requests <- struct{}{}:
			return func(*http.Response, error) { <-t.requests }, nil
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	watch := pacer.GetKey(req)
	done = func(resp *http.Response, err error) {
		if err != nil || resp.StatusCode != http.StatusOK {
			now := t.Clock.Now()
			t.watches.RecordEnd(watch, now, now, req.Context().Err() == nil)
		}
	}
	return done, t.watches.Wait(req.Context(), watch, t.Clock.Now())
}

// Observer observes one request.
type Observer interface {
	// Suspend is called before the request waits for memory to read the response.
	Suspend()
	// Resume is called after the request has waited.
	Resume()
	// Complete is called if the complete response has arrived, before the request waits for memory to decode it.
	Complete()
	// HandleLimitError is called if a watch ends because it exceeds a limit.
	HandleLimitError(err error)
}

// Transport is an http.RoundTripper that sends a request to a target and limits the response. When RoundTrip returns,
// the response has arrived completely, except for the events of a watch.
type Transport struct {
	*Target
	// Next sends the request.
	Next     http.RoundTripper
	Observer Observer
}

// ErrNoResponse is the cause if a target does not respond to a request in time.
var ErrNoResponse = errors.New("no response in time")

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(t.Timeout, func() { cancel(ErrNoResponse) })
	defer timer.Stop() // the events of a watch have no time limit
	req = req.Clone(ctx)
	filterFormats(req)
	resp, err := t.Next.RoundTrip(req)
	if err == nil {
		setRetryAfter(resp)
		err = t.limitResponse(req, resp, cancel)
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), ErrNoResponse) && !budget.IsExhausted(err) {
			err = fmt.Errorf("%w: %w", ErrNoResponse, err)
		}
		cancel(nil)
		return nil, err
	}
	return resp, nil
}

// limitResponse replaces the body of a response by one that is within the limits. The new body calls `cancel` when the
// target has sent everything, or when the client ends the watch.
func (t *Transport) limitResponse(req *http.Request, resp *http.Response, cancel context.CancelCauseFunc) error {
	if isWatch(req) && resp.StatusCode == http.StatusOK {
		return t.startStream(req, resp, cancel)
	}
	defer cancel(nil)
	if resp.StatusCode >= http.StatusBadRequest {
		return readError(req, resp)
	}
	return t.readResponse(req, resp, cancel) // including a response to a watch that contains no events: client-go reads it completely
}

// isWatch reports whether a request opens a watch.
func isWatch(req *http.Request) bool {
	query := req.URL.Query()
	return query.Get("watch") == "true" || query.Get("watch") == "1"
}

// setRetryAfter limits how long client-go waits before it sends a request again.
func setRetryAfter(resp *http.Response) {
	if after := resp.Header.Get("Retry-After"); after != "" && after != "0" {
		resp.Header.Set("Retry-After", "1")
	}
}
