// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
	"github.com/deployerkit/deployerkit/targets/internal/jsonscan"
	"github.com/deployerkit/deployerkit/targets/internal/protoscan"
)

// watchBurst limits how many events and bytes may arrive at once: as many as the sustained rate allows in watchBurst
// seconds.
const watchBurst = 10

// watched is the body of the response to a watch request. It checks each event and returns one event at a time. A
// client reads the next event only after it has decoded the previous event. Therefore, when the client reads the next
// event, watched returns the memory for the previous event to the budget.
type watched struct {
	a      *answers
	ctx    context.Context // the context of the watch request
	source io.ReadCloser
	in     *bufio.Reader
	clk    clock.PassiveClock

	read   func() (measured, error) // reads the next event into `space`
	event  []byte                   // the unread part of the current event
	space  bytes.Buffer
	events *rate.Limiter
	bytes  *rate.Limiter
	begins bool // the server is still sending the objects that existed before the watch began

	mu     sync.Mutex
	claim  *budget.Claim // the claim for decoding the event
	closed bool
	failed bool // the server ended the watch or sent an error
	ended  func(failed bool, why error)
	once   sync.Once
}

// watch replaces the body of the response to a watch request by a body of type watched.
func (a *answers) watch(req *http.Request, resp *http.Response, clk clock.PassiveClock, ended func(failed bool, why error)) error {
	format, err := formatOf(req, resp)
	if err != nil {
		return err
	}
	l := a.limits
	eventBurst, byteBurst := l.WatchEvents*watchBurst, max(l.WatchBytes*watchBurst, l.Object)
	query := req.URL.Query()
	from := query.Get("resourceVersion")
	begins := from == "" || from == "0" || query.Get("sendInitialEvents") == "true"
	if begins {
		eventBurst, byteBurst = max(eventBurst, l.WatchObjects), max(byteBurst, l.List) // the first events list the existing objects
	}
	w := &watched{
		a: a, ctx: req.Context(), source: resp.Body, in: bufio.NewReader(resp.Body), clk: clk, ended: ended, begins: begins,
		events: rate.NewLimiter(rate.Limit(l.WatchEvents), eventBurst), bytes: rate.NewLimiter(rate.Limit(l.WatchBytes), int(byteBurst)),
	}
	if w.read = w.readJSON; format == protobuf {
		w.read = w.readProtobuf
	}
	resp.Body = w
	return nil
}

func (w *watched) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(w.event) == 0 {
		w.keep(nil)
		if err := w.next(); err != nil {
			w.fail(err)
			return 0, err
		}
	}
	n := copy(p, w.event)
	w.event = w.event[n:]
	return n, nil
}

// measured contains the type of an event, its size, and what decoding it takes.
type measured struct {
	kind  string
	bytes int64
	protoscan.Scan
}

// next reads and checks one event.
func (w *watched) next() error {
	if w.space.Cap() > smallAnswer {
		w.space = bytes.Buffer{}
	}
	w.space.Reset()
	m, err := w.read()
	if err != nil {
		return err
	}
	if err := w.a.limits.check(m.Depth, m.Cost); err != nil {
		w.a.hit("values")
		return err
	}
	if m.kind == jsonscan.EventError || m.kind == jsonscan.EventUnknown {
		w.note()
	}
	if err := w.pace(m); err != nil {
		w.a.hit("rate")
		return err
	}
	if m.Cost > smallCost {
		granted, err := w.a.decoding.Claim(w.ctx, w.a.who, m.Cost)
		if err != nil {
			return err
		}
		w.keep(granted)
	}
	w.event = w.space.Bytes()
	return nil
}

// pace counts an event. It returns a LimitError if there have been too many events or bytes.
func (w *watched) pace(m measured) error {
	w.begins = w.begins && m.kind == jsonscan.EventAdded
	l, now := w.a.limits, w.clk.Now()
	switch fewEnough, smallEnough := w.events.AllowN(now, 1), w.bytes.AllowN(now, int(m.bytes)); {
	case !fewEnough && w.begins:
		return &LimitError{Option: "WatchObjects", Reason: fmt.Sprintf("to a watch begins with more than %d objects", l.WatchObjects)}
	case !fewEnough:
		return &LimitError{Option: "WatchEvents", Reason: fmt.Sprintf("to a watch has more than %d events per second", l.WatchEvents)}
	case !smallEnough && w.begins:
		return &LimitError{Option: "List", Reason: fmt.Sprintf("to a watch begins with more than %d bytes", l.List)}
	case !smallEnough:
		return &LimitError{Option: "WatchBytes", Reason: fmt.Sprintf("to a watch has more than %d bytes per second", l.WatchBytes)}
	}
	return nil
}

// readJSON reads one event up to its closing brace, and adds a line break. It does not wait for the line break that the
// server sends. So a client that reads line by line gets each event immediately.
func (w *watched) readJSON() (measured, error) {
	s, end := jsonscan.Scan{}, false
	for !end {
		if _, err := w.in.Peek(1); err != nil && w.space.Len() == 0 {
			return measured{}, err
		} else if err != nil {
			break // the event is incomplete; decoding it will fail
		}
		text, _ := w.in.Peek(w.in.Buffered()) // cannot fail, because it reads nothing
		if w.space.Len() == 0 {
			trimmed := bytes.TrimLeft(text, "\r\n") // the line break after the previous event
			_, _ = w.in.Discard(len(text) - len(trimmed))
			text = trimmed
		}
		var n int
		n, end = s.Read(text)
		w.space.Write(text[:n])
		_, _ = w.in.Discard(n)
		if err := w.fits(s.Bytes); err != nil {
			return measured{}, err
		}
	}
	if end {
		w.space.WriteByte('\n')
	}
	return measured{s.Event, s.Bytes, protoscan.Scan{Cost: s.Cost(), Depth: s.Depth}}, nil
}

// readProtobuf reads one event after its length. The length takes four bytes.
func (w *watched) readProtobuf() (m measured, err error) {
	head, err := w.in.Peek(lengthOfLength)
	if err != nil {
		return m, err
	}
	m.bytes = lengthOfLength + int64(binary.BigEndian.Uint32(head))
	if err := w.fits(m.bytes); err != nil {
		return m, err
	}
	if _, err := io.CopyN(&w.space, w.in, m.bytes); err != nil {
		return m, err
	}
	if m.kind, m.Scan, err = protoscan.Event(w.space.Bytes()[lengthOfLength:]); err != nil {
		w.a.hit("values")
		return m, &LimitError{Reason: err.Error()}
	}
	return m, nil
}

// lengthOfLength is the number of bytes that contain the length of an event in the Protobuf format.
const lengthOfLength = 4

// fits returns an error if an event has more bytes than an object may have.
func (w *watched) fits(size int64) error {
	if size <= w.a.limits.Object {
		return nil
	}
	w.a.hit("event")
	return tooLarge("Object", "an event of a watch", w.a.limits.Object)
}

// keep releases the claim for the previous event, and stores c as the claim for the current event.
func (w *watched) keep(c *budget.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claim.Release()
	w.claim = c
	if w.closed {
		c.Release()
	}
}

func (w *watched) note() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = true
}

// fail ends the watch, and records a failure unless the client ended the watch.
func (w *watched) fail(err error) {
	if w.ctx.Err() == nil {
		w.note()
	}
	w.finish(err)
}

func (w *watched) finish(err error) {
	w.once.Do(func() {
		w.mu.Lock()
		failed := w.failed
		w.mu.Unlock()
		w.ended(failed, err)
	})
}

func (w *watched) Close() error {
	w.finish(nil)
	w.mu.Lock()
	w.closed = true
	w.claim.Release()
	w.mu.Unlock()
	return w.source.Close()
}
