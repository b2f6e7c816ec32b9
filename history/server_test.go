// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// newFakeReviewer returns a Reviewer. All tokens that begin with "good" are valid, but only the user with the token
// "good" may get the item.
func newFakeReviewer(fail error) *Reviewer {
	c := fake.NewSimpleClientset()
	c.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		review.Status.Authenticated = strings.HasPrefix(review.Spec.Token, "good")
		review.Status.User = authenticationv1.UserInfo{Username: review.Spec.Token, Groups: []string{"devs"}}
		return true, review, fail
	})
	c.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = review.Spec.User == "good" && cmp.Equal(review.Spec.Groups, []string{"devs"}) && a.Verb == "get" && a.Resource == "deployitems" &&
			a.Group == "landscaper.gardener.cloud" && a.Namespace == item.Namespace && a.Name == item.Name
		return true, review, nil
	})
	return &Reviewer{tokens: c.AuthenticationV1(), access: c.AuthorizationV1()}
}

func TestHandler(t *testing.T) {
	store := NewStore(0)
	addReconcile(store, item, began, 0)
	for name, tc := range map[string]struct {
		method, path, authorization string
		fail                        error
		want                        int
	}{
		"allowed user":         {path: "/history/shop/web", authorization: "Bearer good", want: 200},
		"scheme in lower case": {path: "/history/shop/web", authorization: "bearer good", want: 200},
		"no token":             {path: "/history/shop/web", want: 401},
		"another scheme":       {path: "/history/shop/web", authorization: "Basic good", want: 401},
		"a wrong token":        {path: "/history/shop/web", authorization: "Bearer bad", want: 401},
		"a huge token":         {path: "/history/shop/web", authorization: "Bearer good" + strings.Repeat("x", maxToken), want: 401},
		"another user":         {path: "/history/shop/web", authorization: "Bearer good-too", want: 403},
		"another item":         {path: "/history/shop/other", authorization: "Bearer good", want: 403},
		"failed review":        {path: "/history/shop/web", authorization: "Bearer good", fail: errors.New("boom"), want: 503},
		"path without an item": {path: "/history/shop", authorization: "Bearer good", want: 404},
		"path below an item":   {path: "/history/shop/web/x", authorization: "Bearer good", want: 404},
		"another path":         {path: "/metrics", authorization: "Bearer good", want: 404},
		"POST request":         {method: http.MethodPost, path: "/history/shop/web", authorization: "Bearer good", want: 405},
	} {
		t.Run(name+" [V5]", func(t *testing.T) {
			method := http.MethodGet
			if tc.method != "" {
				method = tc.method
			}
			req := httptest.NewRequestWithContext(t.Context(), method, tc.path, nil)
			req.Header.Set("Authorization", tc.authorization)
			got := httptest.NewRecorder()
			NewHandler(store, Deployer{Name: "me"}, newFakeReviewer(tc.fail)).ServeHTTP(got, req)
			if got.Code != tc.want || got.Code != 200 && strings.Contains(got.Body.String(), "contract") {
				t.Errorf("want %d, got %d: %s", tc.want, got.Code, got.Body)
			}
			var list List
			if tc.want == 200 && (json.Unmarshal(got.Body.Bytes(), &list) != nil || len(list.Reconciles) != 1 || list.Deployer.Name != "me") {
				t.Errorf("got %s", got.Body)
			}
		})
	}
	t.Run("the number of requests is limited [V5]", func(t *testing.T) {
		h := &handler{store: store, review: func(context.Context, string, types.NamespacedName) error { return nil }, limit: rate.NewLimiter(0, 1)}
		for _, want := range []int{200, 429} {
			got := httptest.NewRecorder()
			if h.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/history/shop/web", nil)); got.Code != want {
				t.Errorf("want %d, got %d", want, got.Code)
			}
		}
	})
}

func TestClient(t *testing.T) {
	answer := func(code int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
	}
	for name, tc := range map[string]struct {
		handler http.Handler
		fault   string
	}{
		"valid history":              {NewHandler(NewStore(0), Deployer{}, newFakeReviewer(nil)), ""},
		"forbidden request":          {answer(403, "no\x1b[31m"), "read history: Forbidden: no"},
		"response that is not JSON":  {answer(200, "<html>"), "is not a history"},
		"response that is too large": {answer(200, `{"reconciles": [`+strings.Repeat("{},", 1<<20)+`{}]}`), "is not a history"},
		"redirect":                   {http.RedirectHandler("https://example.org", http.StatusFound), "read history: Found"},
	} {
		t.Run(name+" [V5]", func(t *testing.T) {
			server := httptest.NewTLSServer(tc.handler)
			defer server.Close()
			c, err := NewClient(&rest.Config{BearerToken: "good"}, server.Listener.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Get(t.Context(), item)
			if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault) || strings.Contains(err.Error(), "\x1b")) {
				t.Errorf("want %q, got %v", tc.fault, err)
			}
		})
	}
	t.Run("the client needs a token and shortens texts [V5]", func(t *testing.T) {
		if _, err := NewClient(&rest.Config{}, "localhost:1", nil); err == nil || !strings.Contains(err.Error(), "--token") {
			t.Errorf("without a token: %v", err)
		}
		l := List{Reconciles: make([]Reconcile, 100)}
		l.Reconciles[99] = Reconcile{Result: "a\x1b" + strings.Repeat("x", 1000), Hooks: []Hook{{Name: "\u202e"}}}
		l.clean()
		last := l.Reconciles[len(l.Reconciles)-1]
		if len(l.Reconciles) != maxReconciles || len(last.Result) > maxWord || strings.ContainsAny(last.Result+last.Hooks[0].Name, "\x1b\u202e") {
			t.Errorf("got %d, %+v", len(l.Reconciles), last)
		}
	})
}

func TestServerStopsWithContext(t *testing.T) {
	t.Run("the server stops with its context, and a used address is not an error [V5]", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		first := httptest.NewServer(nil)
		defer first.Close()
		if err := (&Server{Address: first.Listener.Addr().String()}).Start(ctx); err != nil {
			t.Errorf("an address in use: %v", err)
		}
		cancel()
		if err := (&Server{Address: "127.0.0.1:0"}).Start(ctx); err != nil {
			t.Errorf("want no error at the end, got %v", err)
		}
		if err := (&Server{Address: "127.0.0.1:0", CertFile: "none", KeyFile: "none"}).Start(ctx); err == nil {
			t.Error("want an error for a certificate that does not exist")
		}
	})
	t.Run("the server logs errors to the log of the deployer [V5]", func(t *testing.T) {
		var logged string
		log := funcr.New(func(_, line string) { logged += line }, funcr.Options{})
		if errorLog := (&Server{Log: log}).newServer(tls.Certificate{}).ErrorLog; errorLog != nil {
			errorLog.Print("handshake")
		}
		if !strings.Contains(logged, "handshake") {
			t.Errorf("logged %q", logged)
		}
	})
}
