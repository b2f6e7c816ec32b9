// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
	"github.com/deployerkit/deployerkit/targets/internal/scan"
)

const (
	// MaxErrorSize is the maximum number of bytes that are read from an error response.
	MaxErrorSize = 256 << 10
	// maxDepth is the maximum nesting depth of a response. In practice, schemas of CustomResourceDefinitions are nested
	// most deeply. Their depth is below 200.
	maxDepth = 500
	// smallResponseSize is the size, in bytes, below which a response does not count against Limits.Reading.
	smallResponseSize = 64 << 10
	// smallCost is the maximum memory, in bytes, that decoding a response may take without counting against
	// Limits.Decoding.
	smallCost = 1 << 20
	// largeResponseTime limits the time for reading the rest of a response after its first smallResponseSize bytes.
	largeResponseTime = 5 * time.Second
	// decodedPerSecond is the assumed minimum speed of decoding, in bytes of memory per second. Without a Reservation,
	// this speed determines when the memory for decoding is released.
	decodedPerSecond = 32 << 20
)

var errSlow = fmt.Errorf("the rest of a large response did not arrive within %s", largeResponseTime)

// checkCost returns an error if a response is nested too deeply, or if decoding it would take too much memory.
func (l *Limits) checkCost(cost scan.Cost) error {
	if cost.Depth > maxDepth {
		return newValuesError("", fmt.Sprintf("is nested more than %d levels deep", maxDepth))
	}
	if cost.Memory > l.Decoding {
		return newValuesError("Decoding", "has too many values: decoding it would take more memory than all responses together may use")
	}
	return nil
}

// body is the complete body of a response.
type body struct {
	bytes.Buffer
	reading, decoding *budget.Claim // decoding is nil if the call has a Reservation
	decodingTime      time.Duration
}

// Close releases the memory for reading the body at once, and the memory for decoding it after a while.
func (b *body) Close() error {
	b.reading.Release()
	if b.decoding != nil {
		time.AfterFunc(b.decodingTime, b.decoding.Release)
	}
	return nil
}

// readResponse reads the body of a response completely and replaces resp.Body by the content. It returns an error for
// content that is too large, is nested too deeply, or has too many values. Such content is never decoded.
func (t *Transport) readResponse(req *http.Request, resp *http.Response, cancel context.CancelCauseFunc) error {
	expected, content := t.getContent(req), &body{}
	err := t.readBody(req.Context(), content, expected, resp, cancel)
	if err == nil {
		err = t.waitForDecoding(content, req, resp)
	}
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		if over, ok := errors.AsType[*Error](err); ok {
			t.CountExceeded(over.metric)
		}
		return errors.Join(err, content.Close())
	}
	setBody(resp, content, content.Len())
	return nil
}

// readBody reads a response. If the response has more than smallResponseSize bytes, readBody waits for memory before it
// reads the rest.
func (t *Transport) readBody(ctx context.Context, b *body, c content, resp *http.Response, cancel context.CancelCauseFunc) error {
	if resp.ContentLength > c.limit {
		return newSizeError(c.metric, c.option, c.what, c.limit)
	}
	b.Grow(int(min(max(resp.ContentLength, 0), smallResponseSize, c.limit)) + bytes.MinRead)
	if _, err := io.CopyN(b, resp.Body, min(smallResponseSize, c.limit)); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	size := c.limit
	if resp.ContentLength > 0 {
		size = resp.ContentLength
	}
	var err error
	t.Observer.Suspend()
	if b.reading, err = t.Memory.Reading.Acquire(ctx, t.Owner, size); err != nil {
		return err
	}
	t.Observer.Resume()
	timer := time.AfterFunc(largeResponseTime, func() { cancel(errSlow) })
	if resp.ContentLength > 0 {
		b.Grow(int(resp.ContentLength) - b.Len() + bytes.MinRead)
	}
	_, err = b.ReadFrom(io.LimitReader(resp.Body, c.limit+1-int64(b.Len())))
	if !timer.Stop() { // the request is canceled, or will be at any moment, even if the response is complete
		return errSlow
	}
	if err == nil && int64(b.Len()) > c.limit {
		return newSizeError(c.metric, c.option, c.what, c.limit)
	}
	return err
}

// waitForDecoding waits until the response may be decoded. It returns an error if the response must not be decoded.
func (t *Transport) waitForDecoding(b *body, req *http.Request, resp *http.Response) error {
	if b.Len() == 0 {
		return nil
	}
	if format, err := getFormat(req, resp); err != nil {
		return err
	} else if format == protobufFormat { // the response to a watch, but not a stream of events
		return newFormatError()
	}
	cost := scan.ScanJSON(b.Bytes())
	if err := t.Limits.checkCost(cost); err != nil {
		return err
	}
	var claim *budget.Claim
	if cost.Memory > smallCost {
		t.Observer.Complete()
		var err error
		if claim, err = t.Memory.Decoding.Acquire(req.Context(), t.Owner, cost.Memory); err != nil {
			return err
		}
	}
	if r := getReservation(req.Context()); r != nil {
		r.add(claim, b.Len())
		return nil
	}
	b.decoding, b.decodingTime = claim, time.Duration(cost.Memory)*time.Second/decodedPerSecond
	return nil
}

// readError reads the beginning of an error response. A response that the client must not decode becomes a text.
func readError(req *http.Request, resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, MaxErrorSize))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	setBody(resp, io.NopCloser(bytes.NewReader(text)), len(text))
	if !isCheap(req, resp, text) {
		resp.Header.Set("Content-Type", "text/plain")
	}
	return nil
}

// isCheap reports whether a client may decode an error response without counting it against Limits.Decoding.
func isCheap(req *http.Request, resp *http.Response, text []byte) bool {
	format, err := getFormat(req, resp)
	if err != nil {
		return false
	}
	var cost scan.Cost
	if format == protobufFormat {
		cost, err = scan.ScanProtobuf(text)
	} else {
		cost = scan.ScanJSON(text)
	}
	return err == nil && cost.Memory <= smallCost && cost.Depth <= maxDepth
}

// setBody replaces the body of a response.
func setBody(resp *http.Response, body io.ReadCloser, size int) {
	resp.Body, resp.ContentLength = body, int64(size)
	resp.Header.Del("Content-Length")
}
