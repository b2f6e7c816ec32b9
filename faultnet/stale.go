// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Stale returns a fault that responds to a get or a list with an earlier response to the same request that differs from
// the current one, like an API server that lags behind. back selects the response: 1 (or less) is the previous one, 2
// the one before that. If there are fewer, the oldest one is used. "Not found" is a response too. The fault misses if
// no different response is known.
//
// Lists differ if their items differ. Only lists in JSON are compared by their items; others differ with the resource
// version of the list.
func Stale(back int) Fault {
	back = max(back, 1)
	return Fault{what: fmt.Sprintf("%d answers old", back), verb: ReadVerb, remembers: true, inflict: func(x *exchange) (*http.Response, error) {
		res, err := x.pass()
		if err != nil || !memorable(res) {
			x.miss()
			return res, err
		}
		old := x.network.memory.before(x.req, back)
		if old == nil {
			x.miss()
			return res, nil
		}
		x.hit()
		return old.response(x.req), res.Body.Close()
	}}
}

// memorable reports whether a response is not a failure.
func memorable(res *http.Response) bool {
	return res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNotFound
}

const (
	// maxAnswer is the maximum size of a body that is kept. maxAnswers is the number of responses that are kept per
	// request.
	maxAnswer  = 4 << 20
	maxAnswers = 8
)

// memory holds the responses to reads, per request: those that differ, the newest last.
type memory struct {
	mu      sync.Mutex
	answers map[string][]*answer
}

// answer is a response of the API server.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// keyOfRead identifies a request, including the format of its response.
func keyOfRead(req *http.Request) string {
	return strings.Join([]string{req.URL.Host, req.URL.RequestURI(), req.Header.Get("Accept"), req.Header.Get("Accept-Encoding")}, " ")
}

// note remembers a response, and replaces its body by one that can be read again. Errors and long responses are not
// remembered.
func (m *memory) note(req *http.Request, res *http.Response) error {
	if !memorable(res) {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return err
	}
	rest := res.Body
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	if len(body) > maxAnswer {
		return nil
	}
	m.add(keyOfRead(req), &answer{status: res.StatusCode, header: res.Header.Clone(), body: body})
	return nil
}

// add appends a response if it differs from the last one.
func (m *memory) add(key string, a *answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answers == nil {
		m.answers = map[string][]*answer{}
	}
	known := m.answers[key]
	if len(known) > 0 && known[len(known)-1].same(a) {
		return
	}
	known = append(known, a)
	m.answers[key] = known[max(0, len(known)-maxAnswers):]
}

// before returns the response that is back responses old and differs from the last one, or nil.
func (m *memory) before(req *http.Request, back int) *answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.answers[keyOfRead(req)]
	last := len(known) - 1
	for i := max(0, last-back); i < last; i++ {
		if !known[i].same(known[last]) {
			return known[i]
		}
	}
	return nil
}

// same reports whether two responses are equal.
func (a *answer) same(b *answer) bool {
	if a.status != b.status {
		return false
	}
	if bytes.Equal(a.body, b.body) {
		return true
	}
	items, ok := itemsOf(a.body)
	others, too := itemsOf(b.body)
	return ok && too && bytes.Equal(items, others)
}

// itemsOf returns the items of a list in JSON.
func itemsOf(body []byte) (json.RawMessage, bool) {
	var list struct {
		Items json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, false
	}
	return list.Items, list.Items != nil
}

// response returns the response once more.
func (a *answer) response(req *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}
}
