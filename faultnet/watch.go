// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// DropWatch returns a fault that breaks a watch after the given number of events. Bookmarks and the existing objects in
// a streamed list also count as events. If `after` is 0, the fault breaks the watch immediately, possibly before the
// response headers arrive. Data in transit is lost. If the watch ends earlier, the fault misses.
func DropWatch(after int) Fault {
	return watchFault(fmt.Sprintf("cut after %d events", after), after, func(*watchBody) error {
		return io.ErrUnexpectedEOF
	})
}

// ReplayWatch returns a fault that delivers the first events of a watch twice. After the given number of events, the
// same events are delivered again, in the same order. Then the watch continues.
func ReplayWatch(after int) Fault {
	return watchFault(fmt.Sprintf("replayed after %d events", after), max(after, 1), func(s *watchBody) error {
		s.pending = slices.Concat(s.history...)
		return nil
	})
}

// DelayWatchEvents returns a fault that interrupts a watch after the given number of events. All later events are
// delayed, as with a cache that lags behind. The fault hits when the delay begins, even if the watch ends during the
// delay.
func DelayWatchEvents(after int, d time.Duration) Fault {
	return watchFault(fmt.Sprintf("stalled for %s after %d events", d, after), after, func(s *watchBody) error {
		s.recordOnce.Do(s.x.recordHit)
		return s.x.sleep(d, s.closed)
	})
}

// watchFault returns a fault that calls `do` after the given number of events of a watch.
func watchFault(what string, after int, do func(*watchBody) error) Fault {
	return Fault{description: what, verb: watchVerb, apply: func(x *exchange) (*http.Response, error) {
		res, err := x.send()
		if err != nil {
			x.recordMiss()
			return res, err
		}
		split := newSplitter(res)
		if split == nil {
			x.recordMiss()
			return res, nil
		}
		res.Body = &watchBody{x: x, body: res.Body, events: bufio.NewReader(res.Body), split: split, after: after, do: do, closed: make(chan struct{})}
		return res, nil
	}}
}

// splitter reads one event of a watch and returns the bytes of the event.
type splitter func(*bufio.Reader) ([]byte, error)

// newSplitter returns the splitter for a response. It returns nil if the response is not a watch in a supported format.
func newSplitter(res *http.Response) splitter {
	kind := res.Header.Get("Content-Type")
	switch {
	case res.StatusCode != http.StatusOK || res.Header.Get("Content-Encoding") != "":
		return nil
	case strings.Contains(kind, "protobuf"):
		return splitFrames
	case strings.Contains(kind, "json"):
		return func(r *bufio.Reader) ([]byte, error) { return r.ReadBytes('\n') }
	}
	return nil
}

// splitFrames reads a frame. A frame begins with its length.
func splitFrames(r *bufio.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxResponseSize {
		return nil, fmt.Errorf("an event of %d bytes is too large", n)
	}
	frame := append(length[:], make([]byte, n)...)
	_, err := io.ReadFull(r, frame[len(length):])
	return frame, err
}

// watchBody is the body of a watch to which a fault is applied.
type watchBody struct {
	x      *exchange
	body   io.ReadCloser
	events *bufio.Reader
	split  splitter
	after  int
	do     func(*watchBody) error

	// Only the goroutine that calls Read uses the fields pending, history and err.
	pending []byte
	history [][]byte
	err     error

	recordOnce sync.Once
	closeOnce  sync.Once
	closed     chan struct{}
}

// Read returns pending bytes, or the next event.
func (s *watchBody) Read(p []byte) (int, error) {
	for len(s.pending) == 0 && s.err == nil {
		s.next()
	}
	if len(s.pending) > 0 {
		n := copy(p, s.pending)
		s.pending = s.pending[n:]
		return n, nil
	}
	return 0, s.err
}

// next reads the next event into s.pending. If the fault must be applied before this event, next applies the fault
// instead.
func (s *watchBody) next() {
	if s.do != nil && len(s.history) == s.after {
		do := s.do
		s.do = nil
		if s.err = do(s); s.err == nil || errors.Is(s.err, io.ErrUnexpectedEOF) {
			s.recordOnce.Do(s.x.recordHit)
		}
		s.history = nil
		return
	}
	s.pending, s.err = s.split(s.events)
	if s.do != nil && s.err == nil {
		s.history = append(s.history, slices.Clone(s.pending))
	}
	if s.err != nil {
		s.recordOnce.Do(s.x.recordMiss)
	}
}

// Close ends the watch.
func (s *watchBody) Close() error {
	s.closeOnce.Do(func() { close(s.closed) })
	s.recordOnce.Do(s.x.recordMiss)
	return s.body.Close()
}
