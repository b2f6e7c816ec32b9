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

// Stale returns a fault that makes the API server appear to lag behind. A get or list request receives an earlier
// response to the same request. The parameter `back` selects the earlier response: 1 (or less) means the previous
// response, 2 the response before that, and so on. If there are not so many earlier responses, the oldest one is used.
// If the selected response equals the current response, the next newer response that differs is used instead. If there
// is none, the fault misses. "Not found" counts as a response.
//
// Two lists in JSON differ if their items differ. Two lists in another format differ if their resource versions differ.
func Stale(back int) Fault {
	back = max(back, 1)
	return Fault{what: fmt.Sprintf("stale by %d responses", back), verb: ReadVerb, remembers: true, inflict: func(x *exchange) (*http.Response, error) {
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

// memorable reports whether a response can be used again. The status must be 200 or 404.
func memorable(res *http.Response) bool {
	return res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNotFound
}

const (
	// maxAnswer is the maximum size of a stored body in bytes. maxAnswers is the maximum number of stored responses per
	// request.
	maxAnswer  = 4 << 20
	maxAnswers = 8
)

// memory contains the last responses to each read request, the newest last. Each response differs from the previous
// one.
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

// keyOfRead returns a key for a read request. The key consists of the URL and the format of the response.
func keyOfRead(req *http.Request) string {
	return strings.Join([]string{req.URL.Host, req.URL.RequestURI(), req.Header.Get("Accept"), req.Header.Get("Accept-Encoding")}, " ")
}

// note stores a response with the status 200 or 404 unless it is too long. The body of the response can still be read
// afterwards.
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

// add appends a response if it differs from the previous one.
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

// before returns a response to req that is `back` responses older than the last one. If there are not so many
// responses, it uses the oldest one. If that response equals the last one, it uses the next newer response that differs
// from the last one. The result is nil if there is no such response.
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

// itemsOf returns the items of a list. The second result is false if body is not a list in JSON.
func itemsOf(body []byte) (json.RawMessage, bool) {
	var list struct {
		Items json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, false
	}
	return list.Items, list.Items != nil
}

// response returns the stored response as an http.Response to req.
func (a *answer) response(req *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}
}
