// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deployerkit/deployerkit/targets/internal/pacer"
	"github.com/deployerkit/deployerkit/targets/internal/scan"
)

// watchBurst limits how many events and bytes may arrive at once: as many as the sustained rate allows in watchBurst
// seconds.
const watchBurst = 10

// stream is the body of the response to a watch request. It checks each event and returns one event at a time. A client
// reads the next event only after it has decoded the previous event. Therefore, when the client reads the next event,
// the stream releases the memory for the previous event.
type stream struct {
	*Transport
	req    *http.Request
	cancel context.CancelCauseFunc
	source io.ReadCloser
	in     *bufio.Reader
	began  time.Time

	readEvent func() (scan.Event, error) // reads the next event into `buffer`
	buffer    bytes.Buffer
	unread    []byte // the unread part of the current event
	events    *rate.Limiter
	bytes     *rate.Limiter
	isInitial bool // the server is still sending the objects that existed before the watch began

	hasFailed atomic.Bool // the server ended the watch or sent an error
	ended     sync.Once
	memory    Reservation // the memory for decoding the current event
}

// startStream replaces the body of the response to a watch request by a stream.
func (t *Transport) startStream(req *http.Request, resp *http.Response, cancel context.CancelCauseFunc) error {
	format, err := getFormat(req, resp)
	if err != nil {
		return errors.Join(err, resp.Body.Close())
	}
	s := &stream{
		Transport: t, req: req, cancel: cancel, source: resp.Body, in: bufio.NewReader(resp.Body), began: t.Clock.Now(),
	}
	query := req.URL.Query()
	version := query.Get("resourceVersion")
	s.isInitial = version == "" || version == "0" || query.Get("sendInitialEvents") == "true"
	eventBurst, byteBurst := t.Limits.WatchEvents*watchBurst, max(t.Limits.WatchBytes*watchBurst, t.Limits.Object)
	if s.isInitial {
		eventBurst, byteBurst = max(eventBurst, t.Limits.WatchObjects), max(byteBurst, t.Limits.List)
	}
	s.events = rate.NewLimiter(rate.Limit(t.Limits.WatchEvents), eventBurst)
	s.bytes = rate.NewLimiter(rate.Limit(t.Limits.WatchBytes), int(byteBurst))
	if s.readEvent = s.readJSON; format == protobufFormat {
		s.readEvent = s.readProtobuf
	}
	resp.Body = s
	return nil
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(s.unread) == 0 {
		s.memory.reset()
		if err := s.readNext(); err != nil {
			s.recordEnd(s.hasFailed.Load() || s.req.Context().Err() == nil, err)
			return 0, err
		}
	}
	n := copy(p, s.unread)
	s.unread = s.unread[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.recordEnd(s.hasFailed.Load(), nil)
	s.memory.Release()
	defer s.cancel(nil)
	return s.source.Close()
}

// recordEnd reports once how the watch has ended.
func (s *stream) recordEnd(failed bool, err error) {
	s.ended.Do(func() {
		s.watches.RecordEnd(pacer.GetKey(s.req), s.began, s.Clock.Now(), failed)
		if over, ok := errors.AsType[*Error](err); ok {
			s.CountExceeded(over.metric)
			s.Observer.HandleLimitError(err)
		}
	})
}

// readNext reads and checks one event, and waits until it may be decoded.
func (s *stream) readNext() error {
	if s.buffer.Cap() > smallResponseSize {
		s.buffer = bytes.Buffer{}
	}
	s.buffer.Reset()
	event, err := s.readEvent()
	if err != nil {
		return err
	}
	if err := s.Limits.checkCost(event.Cost); err != nil {
		return err
	}
	if event.Type == string(watch.Error) || event.Type == scan.EventInvalid {
		s.hasFailed.Store(true)
	}
	if err := s.checkRate(event); err != nil {
		return err
	}
	if event.Memory > smallCost {
		claim, err := s.Memory.Decoding.Acquire(s.req.Context(), s.Owner, event.Memory)
		if err != nil {
			return err
		}
		s.memory.add(claim, int(event.Bytes))
	}
	s.unread = s.buffer.Bytes()
	return nil
}

// checkRate counts an event. It returns an error if there have been too many events or bytes.
func (s *stream) checkRate(event scan.Event) error {
	s.isInitial = s.isInitial && event.Type == string(watch.Added)
	now := s.Clock.Now()
	switch areFew, areSmall := s.events.AllowN(now, 1), s.bytes.AllowN(now, int(event.Bytes)); {
	case !areFew && s.isInitial:
		return newRateError("WatchObjects", "begins with more than %d objects", s.Limits.WatchObjects)
	case !areFew:
		return newRateError("WatchEvents", "has more than %d events per second", s.Limits.WatchEvents)
	case !areSmall && s.isInitial:
		return newRateError("List", "begins with more than %d bytes", s.Limits.List)
	case !areSmall:
		return newRateError("WatchBytes", "has more than %d bytes per second", s.Limits.WatchBytes)
	}
	return nil
}

func newRateError(option, format string, limit any) *Error {
	return &Error{Option: option, Reason: fmt.Sprintf("to a watch "+format, limit), metric: "rate"}
}

// checkSize returns an error if an event has more bytes than an object may have.
func (s *stream) checkSize(bytes int64) error {
	if bytes <= s.Limits.Object {
		return nil
	}
	return newSizeError("event", "Object", "an event of a watch", s.Limits.Object)
}

// readJSON reads one event up to its closing brace, and adds a line break. It does not wait for the line break that the
// server sends. So a client that reads line by line gets each event immediately.
func (s *stream) readJSON() (scan.Event, error) {
	scanner := &scan.JSONScanner{}
	for end := false; !end; {
		if _, err := s.in.Peek(1); err != nil && s.buffer.Len() == 0 {
			return scan.Event{}, err
		} else if err != nil {
			return scan.GetJSONEvent(s.buffer.Bytes(), scanner), nil // the event is incomplete; decoding it will fail
		}
		text, _ := s.in.Peek(s.in.Buffered()) // cannot fail, because it reads nothing
		if s.buffer.Len() == 0 {
			trimmed := bytes.TrimLeft(text, "\r\n") // the line break after the previous event
			_, _ = s.in.Discard(len(text) - len(trimmed))
			text = trimmed
		}
		var n int
		n, end = scanner.Scan(text)
		s.buffer.Write(text[:n])
		_, _ = s.in.Discard(n)
		if err := s.checkSize(scanner.Bytes); err != nil {
			return scan.Event{}, err
		}
	}
	s.buffer.WriteByte('\n')
	return scan.GetJSONEvent(s.buffer.Bytes(), scanner), nil
}

// lengthSize is the number of bytes that contain the length of an event in the Protobuf format.
const lengthSize = 4

// readProtobuf reads the length of an event, and then the event.
func (s *stream) readProtobuf() (scan.Event, error) {
	head, err := s.in.Peek(lengthSize)
	if err != nil {
		return scan.Event{}, err
	}
	size := lengthSize + int64(binary.BigEndian.Uint32(head))
	if err := s.checkSize(size); err != nil {
		return scan.Event{}, err
	}
	if _, err := io.CopyN(&s.buffer, s.in, size); err != nil {
		return scan.Event{}, err
	}
	event, err := scan.ScanProtobufEvent(s.buffer.Bytes()[lengthSize:])
	event.Bytes = size
	if err != nil {
		return event, newValuesError("", err.Error())
	}
	return event, nil
}
