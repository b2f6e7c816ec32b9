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
// response to the same request. If back is 1 or less, this is the previous response, if it is 2, the response before
// that, and so on. If there are not so many earlier responses, the oldest one is used. If the selected response equals
// the current response, the next newer response that differs is used instead. If there is none, the fault misses. "Not
// found" counts as a response.
//
// Two lists in JSON differ if their items differ. Two lists in another format differ if their resource versions differ.
func Stale(back int) Fault {
	back = max(back, 1)
	return Fault{description: fmt.Sprintf("stale by %d responses", back), verb: ReadVerb, needsHistory: true, apply: func(x *exchange) (*http.Response, error) {
		res, err := x.send()
		if err != nil || !canStore(res) {
			x.recordMiss()
			return res, err
		}
		old := x.network.history.getEarlier(x.req, back)
		if old == nil {
			x.recordMiss()
			return res, nil
		}
		x.recordHit()
		return old.toResponse(x.req), res.Body.Close()
	}}
}

// canStore reports whether a response can be used again. The status must be 200 or 404.
func canStore(res *http.Response) bool {
	return res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNotFound
}

const (
	// maxResponseSize is the maximum size of a stored body in bytes. maxStoredResponses is the maximum number of stored
	// responses per request.
	maxResponseSize    = 4 << 20
	maxStoredResponses = 8
)

// responseHistory contains the last responses to each read request, the newest last. Each response differs from the
// previous one.
type responseHistory struct {
	mu        sync.Mutex
	responses map[string][]*storedResponse
}

// storedResponse is a response of the API server.
type storedResponse struct {
	status int
	header http.Header
	body   []byte
}

// keyOfRead returns a key for a read request. The key consists of the URL and the format of the response.
func keyOfRead(req *http.Request) string {
	return strings.Join([]string{req.URL.Host, req.URL.RequestURI(), req.Header.Get("Accept"), req.Header.Get("Accept-Encoding")}, " ")
}

// record stores a response with the status 200 or 404 unless it is too long. The body of the response can still be read
// afterwards.
func (m *responseHistory) record(req *http.Request, res *http.Response) error {
	if !canStore(res) {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxResponseSize+1))
	if err != nil {
		return err
	}
	rest := res.Body
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	if len(body) > maxResponseSize {
		return nil
	}
	m.add(keyOfRead(req), &storedResponse{status: res.StatusCode, header: res.Header.Clone(), body: body})
	return nil
}

// add appends a response if it differs from the previous one.
func (m *responseHistory) add(key string, a *storedResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.responses == nil {
		m.responses = map[string][]*storedResponse{}
	}
	known := m.responses[key]
	if len(known) > 0 && known[len(known)-1].equal(a) {
		return
	}
	known = append(known, a)
	m.responses[key] = known[max(0, len(known)-maxStoredResponses):]
}

// getEarlier returns a response to req that is `back` responses older than the last one. If there are not so many
// responses, it uses the oldest one. If that response equals the last one, it uses the next newer response that differs
// from the last one. The result is nil if there is no such response.
func (m *responseHistory) getEarlier(req *http.Request, back int) *storedResponse {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.responses[keyOfRead(req)]
	last := len(known) - 1
	for i := max(0, last-back); i < last; i++ {
		if !known[i].equal(known[last]) {
			return known[i]
		}
	}
	return nil
}

// equal reports whether two responses are equal.
func (a *storedResponse) equal(b *storedResponse) bool {
	if a.status != b.status {
		return false
	}
	if bytes.Equal(a.body, b.body) {
		return true
	}
	items, ok := parseItems(a.body)
	others, too := parseItems(b.body)
	return ok && too && bytes.Equal(items, others)
}

// parseItems returns the items of a list. The second result is false if body is not a list in JSON.
func parseItems(body []byte) (json.RawMessage, bool) {
	var list struct {
		Items json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, false
	}
	return list.Items, list.Items != nil
}

// toResponse returns the stored response as an http.Response to req.
func (a *storedResponse) toResponse(req *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}
}
