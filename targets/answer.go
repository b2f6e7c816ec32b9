// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
	"github.com/deployerkit/deployerkit/targets/internal/jsonscan"
	"github.com/deployerkit/deployerkit/targets/internal/protoscan"
)

const (
	// smallAnswer is the size, in bytes, below which a response does not count against Limits.Reading.
	smallAnswer = 64 << 10
	// smallCost is the maximum memory, in bytes, that decoding a response may take without counting against
	// Limits.Decoding.
	smallCost = 1 << 20
	// largeAnswerTime limits the time for reading the rest of a response after its first smallAnswer bytes.
	largeAnswerTime = 5 * time.Second
	// decodedPerSecond is the assumed minimum speed of decoding, in bytes of memory per second. If a caller does not
	// call Hold, this speed determines when the memory for decoding is released.
	decodedPerSecond = 32 << 20
)

var errSlow = fmt.Errorf("the rest of a large response did not arrive within %s", largeAnswerTime)

// answers reads the responses of one target and enforces the limits.
type answers struct {
	limits   *Limits
	base     string // the path in the URL of the server
	who      budget.Owner
	reading  *budget.Budget
	decoding *budget.Budget
	hit      func(limit string) // counts a response that has exceeded a limit
}

// class is what a response contains: a list, an object or discovery data. Each class has its own limit.
type class struct {
	name, what, option string
	limit              int64
}

// classOf returns the class of the response to a request.
func (a *answers) classOf(req *http.Request) class {
	l := a.limits
	path, _ := strings.CutPrefix(req.URL.Path, a.base)
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	skip := 3
	switch {
	case len(parts) > 0 && parts[0] == "api":
		skip = 2
	case len(parts) == 0 || parts[0] != "apis":
		skip = len(parts)
	}
	if len(parts) <= skip {
		return class{"discovery", "a response about kinds", "Discovery", l.Discovery}
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	isList := len(parts) == 1 && (req.Method == http.MethodGet || req.Method == http.MethodDelete)
	if isList {
		return class{"page", "a page of a list", "Page", l.Page}
	}
	return class{"object", "one object", "Object", l.Object}
}

const protobuf = "application/vnd.kubernetes.protobuf"

// limitFormats removes from the Accept header of a request the formats whose cost of decoding cannot be estimated. It
// keeps JSON, and Protobuf if the request watches the metadata of objects.
func limitFormats(req *http.Request) {
	var keep []string
	for one := range strings.SplitSeq(req.Header.Get("Accept"), ",") {
		kind, parameters, err := mime.ParseMediaType(one)
		isMetadata := kind == protobuf && parameters["as"] == "PartialObjectMetadata" && isWatch(req)
		if err != nil || !isMetadata && (strings.Contains(kind, "protobuf") || strings.Contains(kind, "cbor")) {
			continue
		}
		keep = append(keep, strings.TrimSpace(one))
	}
	if len(keep) == 0 {
		keep = []string{"application/json"}
	}
	req.Header.Set("Accept", strings.Join(keep, ","))
}

// read reads the body of a response completely and replaces resp.Body by the content. It returns an error for content
// that is too large, is nested too deeply, or has too many values. Such content is never decoded.
func (a *answers) read(ctx context.Context, cancel context.CancelCauseFunc, req *http.Request, resp *http.Response, token string, turn *turn) error {
	if resp.StatusCode >= http.StatusBadRequest {
		return readError(req, resp, token)
	}
	c := a.classOf(req)
	body, err := a.receive(ctx, cancel, c, resp, turn)
	if err != nil {
		a.count(c, err)
		return errors.Join(err, resp.Body.Close())
	}
	if err = errors.Join(a.admit(ctx, req, resp, body, turn), resp.Body.Close()); err != nil {
		body.claim.Release()
		a.count(c, err)
		return err
	}
	resp.Body, resp.ContentLength = body, int64(body.Len())
	resp.Header.Del("Content-Length")
	return nil
}

func (a *answers) count(c class, err error) {
	if over, ok := errors.AsType[*LimitError](err); ok {
		if over.Option == c.option {
			a.hit(c.name)
			return
		}
		a.hit("values")
	}
}

// readError reads the beginning of an error response and removes the token from it, because the response may quote the
// request. A response that the client must not decode becomes a text.
func readError(req *http.Request, resp *http.Response, token string) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	hidden := hideQuoted(token, hide(token, string(text)))
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(hidden)), int64(len(hidden))
	resp.Header.Del("Content-Length")
	if !isCheap(req, resp, []byte(hidden)) {
		resp.Header.Set("Content-Type", "text/plain")
	}
	return nil
}

// isCheap reports whether a client may decode an error response without counting it against Limits.Decoding.
func isCheap(req *http.Request, resp *http.Response, text []byte) bool {
	format, err := formatOf(req, resp)
	var s protoscan.Scan
	switch {
	case err != nil:
		return false
	case format == protobuf:
		s, err = protoscan.Object(text)
	default:
		all := jsonscan.All(text)
		s.Cost, s.Depth = all.Cost(), all.Depth
	}
	return err == nil && s.Cost <= smallCost && s.Depth <= maxAnswerDepth
}

// body is the body of a response that has been read.
type body struct {
	bytes.Buffer
	claim *budget.Claim // the claim on the budget for reading
	guess func()        // releases the claim for decoding after an estimated time, for callers that do not call Hold
	once  sync.Once
}

func (b *body) Close() error {
	b.once.Do(func() {
		b.claim.Release()
		if b.guess != nil {
			b.guess()
		}
	})
	return nil
}

// receive reads a response. If the response has more than smallAnswer bytes, receive claims a part of the budget for
// reading before it reads the rest.
func (a *answers) receive(ctx context.Context, cancel context.CancelCauseFunc, c class, resp *http.Response, turn *turn) (*body, error) {
	b := &body{}
	if resp.ContentLength > c.limit {
		return b, tooLarge(c.option, c.what, c.limit)
	}
	b.Grow(int(min(max(resp.ContentLength, 0), smallAnswer, c.limit)) + bytes.MinRead)
	if _, err := io.CopyN(b, resp.Body, min(smallAnswer, c.limit)); errors.Is(err, io.EOF) {
		return b, nil
	} else if err != nil {
		return b, err
	}
	amount := c.limit
	if resp.ContentLength > 0 {
		amount = resp.ContentLength
	}
	var err error
	turn.pause()
	if b.claim, err = a.reading.Claim(ctx, a.who, amount); err != nil {
		return b, err
	}
	turn.resume()
	timer := time.AfterFunc(largeAnswerTime, func() { cancel(errSlow) })
	defer timer.Stop()
	if resp.ContentLength > 0 {
		b.Grow(int(resp.ContentLength) - b.Len() + bytes.MinRead)
	}
	_, err = b.ReadFrom(io.LimitReader(resp.Body, c.limit+1-int64(b.Len())))
	switch {
	case errors.Is(context.Cause(ctx), errSlow):
		err = errSlow
	case err == nil && int64(b.Len()) > c.limit:
		err = tooLarge(c.option, c.what, c.limit)
	}
	if err != nil {
		b.claim.Release()
	}
	return b, err
}

// admit waits until the response may be decoded. It returns an error if the response must not be decoded.
func (a *answers) admit(ctx context.Context, req *http.Request, resp *http.Response, b *body, turn *turn) error {
	if b.Len() == 0 {
		return nil
	}
	if format, err := formatOf(req, resp); err != nil {
		return err
	} else if format == protobuf { // the response to a watch, but not a stream of events
		return errFormat()
	}
	s := jsonscan.All(b.Bytes())
	if err := a.limits.check(s.Depth, s.Cost()); err != nil {
		return err
	}
	h := budget.HoldOf(req.Context())
	if s.Cost() <= smallCost {
		if h != nil {
			h.Add(nil, b.Len())
		}
		return nil
	}
	turn.complete()
	granted, err := a.decoding.Claim(ctx, a.who, s.Cost())
	if err != nil {
		return err
	}
	if h != nil {
		h.Add(granted, b.Len())
		return nil
	}
	b.guess = func() { time.AfterFunc(time.Duration(s.Cost())*time.Second/decodedPerSecond, granted.Release) }
	return nil
}

// formatOf returns the media type of a response. It returns an error if the request does not accept this type. Text is
// always allowed, because text, such as the log of a Pod, is not decoded. If the response has no valid media type,
// formatOf sets it to JSON, because a client would otherwise assume that the response has the format of its requests.
func formatOf(req *http.Request, resp *http.Response) (string, error) {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = "application/json"
		resp.Header.Set("Content-Type", kind)
	}
	if kind == "application/json" || strings.HasPrefix(kind, "text/") || strings.Contains(req.Header.Get("Accept"), kind) {
		return kind, nil
	}
	return "", errFormat()
}

func errFormat() error { return &LimitError{Reason: "has a format that the request does not accept"} }
