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

// CutWatch returns a fault that breaks a watch after the given number of events. If after is 0, it breaks the watch
// immediately, possibly before its headers arrive. Data in transit is lost. All events count, including bookmarks and
// the initial state of a streamed list. The fault misses a watch that ends earlier.
func CutWatch(after int) Fault {
	return watchFault(fmt.Sprintf("cut after %d events", after), after, func(*stream) error {
		return io.ErrUnexpectedEOF
	})
}

// ReplayWatch returns a fault that delivers the events of a watch again, in order, after the given number of them, so
// that the client sees the past and then the present again.
func ReplayWatch(after int) Fault {
	return watchFault(fmt.Sprintf("replayed after %d events", after), max(after, 1), func(s *stream) error {
		s.pending = slices.Concat(s.history...)
		return nil
	})
}

// StallWatch returns a fault that delays everything after the given number of events, as a cache that lags behind. It
// has hit as soon as it waits, whether or not the watch ends meanwhile.
func StallWatch(after int, d time.Duration) Fault {
	return watchFault(fmt.Sprintf("stalled for %s after %d events", d, after), after, func(s *stream) error {
		s.settle.Do(s.x.hit)
		return s.x.sleep(d, s.closed)
	})
}

// watchFault returns a fault that does something to a watch after the given number of events.
func watchFault(what string, after int, do func(*stream) error) Fault {
	return Fault{what: what, verb: watchVerb, inflict: func(x *exchange) (*http.Response, error) {
		res, err := x.pass()
		if err != nil {
			x.miss()
			return res, err
		}
		split := splitterOf(res)
		if split == nil {
			x.miss()
			return res, nil
		}
		res.Body = &stream{x: x, body: res.Body, events: bufio.NewReader(res.Body), split: split, after: after, do: do, closed: make(chan struct{})}
		return res, nil
	}}
}

// splitter reads one event of a watch, unchanged.
type splitter func(*bufio.Reader) ([]byte, error)

// splitterOf returns the splitter for a response, or nil if the response is not a watch that can be read.
func splitterOf(res *http.Response) splitter {
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

// splitFrames reads a frame that is preceded by its length.
func splitFrames(r *bufio.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxAnswer {
		return nil, fmt.Errorf("an event of %d bytes", n)
	}
	frame := append(length[:], make([]byte, n)...)
	_, err := io.ReadFull(r, frame[len(length):])
	return frame, err
}

// stream is the body of a watch to which a fault is applied.
type stream struct {
	x      *exchange
	body   io.ReadCloser
	events *bufio.Reader
	split  splitter
	after  int
	do     func(*stream) error

	// The fields below belong to the reader.
	pending []byte
	history [][]byte
	err     error

	settle sync.Once
	once   sync.Once
	closed chan struct{}
}

// Read returns pending bytes, or the next event.
func (s *stream) Read(p []byte) (int, error) {
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

// next gets the next event, or applies the fault before it.
func (s *stream) next() {
	if s.do != nil && len(s.history) == s.after {
		do := s.do
		s.do = nil
		if s.err = do(s); s.err == nil || errors.Is(s.err, io.ErrUnexpectedEOF) {
			s.settle.Do(s.x.hit)
		}
		s.history = nil
		return
	}
	s.pending, s.err = s.split(s.events)
	if s.do != nil && s.err == nil {
		s.history = append(s.history, slices.Clone(s.pending))
	}
	if s.err != nil {
		s.settle.Do(s.x.miss)
	}
}

// Close ends the watch.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	s.settle.Do(s.x.miss)
	return s.body.Close()
}
