// SPDX-License-Identifier: Apache-2.0

package rewatch_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/internal/rewatch"
)

// fakeServer responds to a list request with the given code and body, and to a watch request with one event. It records
// the queries.
type fakeServer struct {
	code int
	list string

	mu      sync.Mutex
	queries []string
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, r.URL.RawQuery)
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Has("watch") {
		_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"}}}`)
		return
	}
	w.WriteHeader(s.code)
	_, _ = io.WriteString(w, s.list)
}

// newList returns a list with the given version that contains one object.
func newList(version string) string {
	return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"` + version + `"},"items":[{"metadata":{"resourceVersion":"3"}}]}`
}

// status returns a Status with the given reason, as the response to a rejected request.
func status(reason metav1.StatusReason) string {
	return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + string(reason) + `"}`
}

func TestWrap(t *testing.T) {
	const look = "labelSelector=a%3Db&limit=1"
	for name, tc := range map[string]struct {
		from string
		code int
		list string

		refused func(error) bool // reports whether an error is the expected refusal; nil if the watch must succeed
		asked   string           // the query that the transport must send before the watch
	}{
		"a new watch":                                            {from: ""},
		"a new watch with initial events":                        {from: "0"},
		"the server has newer versions [F60]":                    {from: "10", code: 200, list: newList("11"), asked: look},
		"the server has the same version [F60]":                  {from: "10", code: 200, list: newList("10"), asked: look},
		"the server was restored [F60]":                          {from: "10", code: 200, list: newList("9"), asked: look, refused: apierrors.IsResourceExpired},
		"versions that are not numbers":                          {from: "10", code: 200, list: newList("x"), asked: look},
		"a list without a version":                               {from: "10", code: 200, list: newList(""), asked: look},
		"a response that is not a list":                          {from: "10", code: 200, list: "[", asked: look},
		"lists are forbidden":                                    {from: "10", code: 403, list: status(metav1.StatusReasonForbidden), asked: look},
		"the response of a server that is not ready is returned": {from: "10", code: 503, list: status(metav1.StatusReasonServiceUnavailable), asked: look, refused: apierrors.IsServiceUnavailable},
		"the response of an overloaded server is returned":       {from: "10", code: 429, list: status(metav1.StatusReasonTooManyRequests), asked: look, refused: apierrors.IsTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeServer{code: tc.code, list: tc.list}
			srv := httptest.NewServer(s)
			t.Cleanup(srv.Close)
			cfg := &rest.Config{Host: srv.URL}
			cfg.Wrap(rewatch.Wrap)
			cfg.Wrap(rewatch.Wrap) // the second call must have no effect
			client, err := metadata.NewForConfig(cfg)
			if err != nil {
				t.Fatal(err)
			}
			seconds := int64(60)
			w, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Watch(t.Context(), metav1.ListOptions{
				LabelSelector: "a=b", ResourceVersion: tc.from, TimeoutSeconds: &seconds, AllowWatchBookmarks: true,
			})
			watched := err == nil
			switch {
			case tc.refused != nil && (err == nil || !tc.refused(err)):
				t.Errorf("the error of the watch is %v", err)
			case tc.refused == nil && err != nil:
				t.Fatal(err)
			case watched:
				if e := <-w.ResultChan(); e.Type != apiwatch.Bookmark {
					t.Errorf("got event %v", e)
				}
				w.Stop()
			}
			var want []string
			if tc.asked != "" {
				want = append(want, tc.asked)
			}
			got := s.queries
			if watched && len(got) > 0 {
				got = got[:len(got)-1]
			}
			if diff := cmp.Diff(want, got, cmp.Transformer("none", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("requests before the watch (-want +got):\n%s", diff)
			}
		})
	}
}

// roundTrip is a function that implements http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// request returns a list or watch request with the given query.
func request(t *testing.T, query url.Values) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example.com/api/v1/pods?"+query.Encode(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestWrapWithUnresponsiveServer(t *testing.T) {
	continued := url.Values{"watch": {"true"}, "resourceVersion": {"10"}}
	t.Run("the error of a broken connection is returned", func(t *testing.T) {
		broken := errors.New("broken")
		_, err := rewatch.Wrap(roundTrip(func(*http.Request) (*http.Response, error) { return nil, broken })).RoundTrip(request(t, continued)) //nolint:bodyclose // there is none
		if !errors.Is(err, broken) {
			t.Errorf("error = %v, want %v", err, broken)
		}
	})
	t.Run("an incomplete response is an error", func(t *testing.T) {
		next := roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(io.MultiReader(errReader{}))}, nil
		})
		if _, err := rewatch.Wrap(next).RoundTrip(request(t, continued)); !errors.Is(err, io.ErrUnexpectedEOF) { //nolint:bodyclose // there is none
			t.Errorf("error = %v, want %v", err, io.ErrUnexpectedEOF)
		}
	})
	t.Run("a server without a response causes a timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			next := roundTrip(func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			})
			_, err := rewatch.Wrap(next).RoundTrip(request(t, continued)) //nolint:bodyclose // there is none
			if waited := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || waited > 30*time.Second {
				t.Errorf("got %v after %s", err, waited)
			}
		})
	})
	t.Run("other requests are not changed", func(t *testing.T) {
		for _, query := range []url.Values{
			{}, {"resourceVersion": {"10"}}, {"watch": {"true"}}, {"watch": {"true"}, "resourceVersion": {"10"}, "sendInitialEvents": {"true"}},
		} {
			var asked []string
			next := roundTrip(func(req *http.Request) (*http.Response, error) {
				asked = append(asked, req.URL.RawQuery)
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})
			if _, err := rewatch.Wrap(next).RoundTrip(request(t, query)); err != nil { //nolint:bodyclose // it is empty
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{query.Encode()}, asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		}
	})
}

// errReader is a reader that fails.
type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestWrappedRoundTripper(t *testing.T) {
	next := &http.Transport{}
	wrapped, ok := rewatch.Wrap(next).(interface{ WrappedRoundTripper() http.RoundTripper })
	if !ok || wrapped.WrappedRoundTripper() != http.RoundTripper(next) {
		t.Error("client-go does not find the transport inside")
	}
	if wrapped, ok = rewatch.Wrap(nil).(interface{ WrappedRoundTripper() http.RoundTripper }); !ok || wrapped.WrappedRoundTripper() != http.DefaultTransport {
		t.Error("the default is not http.DefaultTransport")
	}
}
