// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// Behaviour changes how a server responds. It returns a handler that replaces `next`, the handler that responds without
// the Behaviour.
type Behaviour func(next http.Handler) http.Handler

// Match selects requests.
type Match func(*http.Request) bool

// When applies behaviours only to matching requests. The first behaviour is the outermost.
func When(match Match, behaviours ...Behaviour) Behaviour {
	return func(next http.Handler) http.Handler {
		changed := next
		for _, behaviour := range slices.Backward(behaviours) {
			changed = behaviour(changed)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if match(r) {
				changed.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Server is an API server with TLS on a loopback address. Create it with New. Its methods are safe for concurrent use.
type Server struct {
	// URL is the address of the server.
	URL string

	http  *httptest.Server
	ended chan struct{}
	end   sync.Once

	mu       sync.Mutex
	requests []Request
	open     int // number of requests in progress
	maxOpen  int
}

// Request is what a server records about a request.
type Request struct {
	Method, Path, Query string
}

// New starts a server. Without behaviours, the server stores ConfigMaps, Secrets and Namespaces in memory, accepts any
// credentials, and allows every request. If several behaviours apply to a request, the first is the outermost.
func New(behaviours ...Behaviour) *Server {
	s := &Server{ended: make(chan struct{})}
	handler := When(func(*http.Request) bool { return true }, behaviours...)(newStore())
	s.http = httptest.NewUnstartedServer(s.recordRequests(handler))
	s.http.EnableHTTP2 = true
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.http.StartTLS()
	s.URL = s.http.URL
	return s
}

// Close ends all requests and stops the server. Further calls do nothing.
func (s *Server) Close() {
	s.end.Do(func() {
		close(s.ended)
		s.http.CloseClientConnections()
		s.http.Close()
	})
}

// CA returns the certificate of the server as PEM.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Kubeconfig returns a kubeconfig for the server with a bearer token.
func (s *Server) Kubeconfig(token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: faultnet
contexts: [{name: faultnet, context: {cluster: faultnet, user: faultnet}}]
clusters: [{name: faultnet, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: faultnet, user: {token: %q}}]
`, s.URL, base64.StdEncoding.EncodeToString(s.CA()), token)
}

// CountRequests returns the number of recorded requests that match. If match is nil, it counts all recorded requests.
func (s *Server) CountRequests(match func(Request) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, r := range s.requests {
		if match == nil || match(r) {
			count++
		}
	}
	return count
}

// MaxConcurrentRequests returns the largest number of requests that were in progress at the same time.
func (s *Server) MaxConcurrentRequests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxOpen
}

// maxRequests is the maximum number of recorded requests. Without a limit, a client that sends requests in a loop would
// fill the memory of the test.
const maxRequests = 1_000_000

func (s *Server) recordRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if len(s.requests) < maxRequests {
			s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery})
		}
		s.open++
		s.maxOpen = max(s.maxOpen, s.open)
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.open--
		}()
		next.ServeHTTP(w, r.WithContext(withServerClosed(r.Context(), s.ended)))
	})
}
