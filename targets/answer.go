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
)

const (
	// smallAnswer is how many bytes of an answer are read without asking anybody.
	smallAnswer = 64 << 10
	// smallCost is how much memory decoding may take without asking anybody.
	smallCost = 1 << 20
	// largeAnswerTime is how long the rest of a large answer may take.
	largeAnswerTime = 5 * time.Second
	// decodedPerSecond is how fast answers are decoded, at least, in bytes of their cost. For callers without Hold.
	decodedPerSecond = 32 << 20
)

var errSlow = fmt.Errorf("the rest of a large answer did not come within %s", largeAnswerTime)

// answers is what reading answers of one target needs.
type answers struct {
	limits   *Limits
	base     string // path of the server
	who      budget.Owner
	reading  *budget.Budget
	decoding *budget.Budget
	hit      func(limit string) // of the metrics
}

// class is what an answer is about.
type class struct {
	name, what, option string
	limit              int64
}

// classOf tells a list from an object, and both from what is said about kinds.
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
		return class{"discovery", "an answer about kinds", "Discovery", l.Discovery}
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

// onlyJSON removes other formats from what a request accepts: what they take when they are decoded cannot be seen
// before.
func onlyJSON(header http.Header) {
	var keep []string
	for one := range strings.SplitSeq(header.Get("Accept"), ",") {
		kind := strings.TrimSpace(strings.SplitN(one, ";", 2)[0])
		if kind == "" || strings.Contains(kind, "protobuf") || strings.Contains(kind, "cbor") {
			continue
		}
		keep = append(keep, strings.TrimSpace(one))
	}
	if len(keep) == 0 {
		keep = []string{"application/json"}
	}
	header.Set("Accept", strings.Join(keep, ","))
}

// read replaces the body of an answer by what was read of it: all of it, or an error. Nothing is decoded that is too
// large, too deep, or has too many values.
func (a *answers) read(ctx context.Context, cancel context.CancelCauseFunc, req *http.Request, resp *http.Response, token string, turn *turn) error {
	if resp.StatusCode >= http.StatusBadRequest {
		return readError(resp, token)
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

// readError reads the beginning of an error, which may quote what it was sent.
func readError(resp *http.Response, token string) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	hidden := hideQuoted(token, hide(token, string(text)))
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(hidden)), int64(len(hidden))
	resp.Header.Del("Content-Length")
	return nil
}

// body is an answer that has been read.
type body struct {
	bytes.Buffer
	claim *budget.Claim // for its bytes
	guess func()        // ends the claim for decoding it, if no caller does
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

// receive reads an answer. A large one needs its share of the budget before more than its beginning is read.
func (a *answers) receive(ctx context.Context, cancel context.CancelCauseFunc, c class, resp *http.Response, turn *turn) (*body, error) {
	b := &body{}
	if resp.ContentLength > c.limit {
		return b, tooLarge(c.option, c.what, c.limit)
	}
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

// admit waits until the answer may be decoded.
func (a *answers) admit(ctx context.Context, req *http.Request, resp *http.Response, b *body, turn *turn) error {
	if b.Len() == 0 {
		return nil
	}
	if err := isReadable(req, resp); err != nil {
		return err
	}
	s := jsonscan.Scan{}
	for _, c := range b.Bytes() {
		s.Next(c)
	}
	if err := a.limits.check(&s); err != nil {
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

// isReadable refuses what the request did not ask for. Texts, such as the logs of pods, are not decoded.
func isReadable(req *http.Request, resp *http.Response) error {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind == "application/json" || strings.HasPrefix(kind, "text/") || strings.Contains(req.Header.Get("Accept"), kind) {
		return nil
	}
	return &LimitError{Reason: "is not JSON"}
}
