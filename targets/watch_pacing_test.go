// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/internal/rewatch"
	"github.com/deployerkit/deployerkit/targets/internal/limits"
)

// pipeListener is an in-memory network for a synctest bubble.
type pipeListener struct {
	open   chan net.Conn
	closed chan struct{}
}

func (p *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.open <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-p.open:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	close(p.closed)
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// TestWatchesPerMinuteAreLimited runs an informer of client-go for a minute against a target that ends each watch, and
// counts the requests.
func TestWatchesPerMinuteAreLimited(t *testing.T) {
	status := func(code int) hostile.Behaviour {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hostile.WriteStatus(w, code, "", "no") })
		}
	}
	watches := func(b hostile.Behaviour) hostile.Behaviour { return hostile.When(hostile.IsWatch, b) }
	for name, behaviour := range map[string]hostile.Behaviour{
		"older versions each time [F6]":       newOutdatedServer,
		"an event with code 410 [F6]":         watches(hostile.WatchExpired()),
		"nothing [F6]":                        watches(hostile.EmptyWatch()),
		"another format [F6]":                 watches(hostile.ContentType("application/yaml")),
		"a response with code 410 [F6]":       watches(status(http.StatusGone)),
		"too many requests [F6]":              watches(status(http.StatusTooManyRequests)),
		"an error of the server [F6]":         watches(status(http.StatusInternalServerError)),
		"a redirect [F6]":                     watches(hostile.Redirect("https://example.com")),
		"an object that is not an event [F6]": watches(hostile.DeepObject(5)),
	} {
		t.Run("sends few requests to a target that responds with "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if n := getRequestsPerMinute(t, behaviour); n > 100 || n < 3 {
					t.Errorf("%d requests in a minute, want 3 to 100", n)
				} else {
					t.Logf("%d requests in a minute", n)
				}
			})
		})
	}
}

// writeList writes an empty list with the given version.
func writeList(w http.ResponseWriter, version string) {
	hostile.WriteJSON(w, http.StatusOK, metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: version},
	})
}

// newOutdatedServer ends each watch. In each list, it returns an older version than in the previous list.
func newOutdatedServer(http.Handler) http.Handler {
	version := 1_000_000
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hostile.IsWatch(r) {
			w.WriteHeader(http.StatusOK)
			return
		}
		version--
		writeList(w, strconv.Itoa(version))
	})
}

// getRequestsPerMinute returns the number of requests that an informer sends within a minute, by the clock of the
// synctest bubble.
func getRequestsPerMinute(t *testing.T, behaviour hostile.Behaviour) (requests int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	network := &pipeListener{open: make(chan net.Conn), closed: make(chan struct{})}
	list := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeList(w, "1") })
	hostile := behaviour(list)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests > 1000 {
			cancel() // if there are no pauses, no time passes in the bubble, and the minute would never end
		}
		hostile.ServeHTTP(w, r)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(network) }()

	l := limits.Limits(Limits{}.withDefaults())
	transport := &transport{
		health: &healthTracker{minPause: time.Second, maxPause: time.Minute}, handleUnauthorized: func(*credentialLink, string) {}, countRequest: func(string, string) {},
		target: limits.NewTarget(limits.Options{
			Limits: l, Memory: limits.NewMemory(l), Timeout: time.Minute, Clock: clock.RealClock{}, CountExceeded: func(string) {},
		}),
	}
	transport.link.Store(newLinkWithTransport(&http.Transport{DialContext: network.dial}))
	client, err := metadata.NewForConfigAndClient(&rest.Config{Host: "http://target"}, &http.Client{Transport: rewatch.Wrap(transport)})
	if err != nil {
		t.Fatal(err)
	}
	informer := metadatainformer.NewFilteredMetadataInformer(client, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", 0, cache.Indexers{}, nil)
	informer.Informer().RunWithContext(ctx)
	transport.link.Load().transport.CloseIdleConnections()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	return requests
}
