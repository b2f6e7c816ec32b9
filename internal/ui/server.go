// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/history"
)

//go:embed static
var static embed.FS

// These constants limit the load that browsers can cause.
const (
	maxStreams    = 16
	maxReads      = 8
	writeTimeout  = 30 * time.Second
	readTimeout   = 45 * time.Second
	keepAlive     = 10 * time.Second
	collectPeriod = 150 * time.Millisecond // changes within this period become one message
)

// Options configures a Server.
type Options struct {
	// Config is for the cluster with the deploy items. Host is for the cluster with the deployers; the default is Config.
	// The server only reads with these configs, see [NewReadOnly].
	Config, Host *rest.Config
	// Namespace is the only namespace that the page shows. If it is empty, the page shows all namespaces.
	Namespace string
	// History returns the last reconciles of an item. If it is nil, the page has no timeline.
	History func(ctx context.Context, item types.NamespacedName) ([]history.Reconcile, error)
	// Open returns a client for a Target, see explain.TreeOptions. If it is nil, the page shows only what the status of
	// an item says about its objects.
	Open func(ctx context.Context, target *lsv1alpha1.Target) (c client.Reader, done func(), err error)
	// Plan returns what a reconcile of an item would change in its target. It must not change anything. If it is nil, the page
	// shows no planned changes.
	Plan func(ctx context.Context, item types.NamespacedName) (apply.Plan, error)
	// Token must accompany each request. It is required unless the listener has a loopback address.
	Token string
	// HostNames lists the names under which browsers may open the page, besides localhost and IP addresses.
	HostNames []string
	// Clock returns the current time. The default is the real clock.
	Clock clock.PassiveClock
}

// ErrToken is returned if a server without a token would listen on an address that other computers can reach.
var ErrToken = errors.New("only a loopback address may be used without a token")

// Server serves the page.
type Server struct {
	options Options
	client  client.Client
	host    client.Client
	store   *store
	watcher *watcher
	// reads limits the number of concurrent reads of details.
	reads chan struct{}

	mu        sync.Mutex
	deployers deployerList
}

// NewServer returns a server. It sends no request to a cluster, except to discover its resources.
func NewServer(o Options) (*Server, error) {
	if o.Host == nil {
		o.Host = o.Config
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.Config, o.Host = copyReadOnly(o.Config), copyReadOnly(o.Host)
	scheme, err := deployerlib.Scheme()
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, store: newStore(), reads: make(chan struct{}, maxReads), deployers: deployerList{Deployers: []deployer{}}}
	if s.client, err = client.New(o.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	if s.host, err = client.New(o.Host, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("create client for the cluster of the deployers: %w", err)
	}
	s.watcher = &watcher{
		store: s.store, scheme: scheme, config: o.Config, namespace: o.Namespace, clock: o.Clock,
		synced: map[string]bool{}, faults: map[string]string{},
	}
	return s, nil
}

// copyReadOnly returns a copy of a config whose clients cannot write.
func copyReadOnly(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.Wrap(NewReadOnly)
	return out
}

// Serve serves the page until ctx is done, and closes the listener. It returns ErrToken if the options do not permit the
// address of the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	addr, _ := listener.Addr().(*net.TCPAddr)
	a := access{loopback: addr != nil && addr.IP.IsLoopback(), hosts: s.options.HostNames, token: s.options.Token}
	if !a.loopback && a.token == "" {
		return errors.Join(ErrToken, listener.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.watcher.run(ctx) })
	running.Go(func() { s.followDeployers(ctx) })
	server := &http.Server{
		Handler: a.wrap(s.newHandler()), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	running.Go(func() {
		<-ctx.Done()
		_ = server.Close() // its error is that of the listener, which Serve returns
	})
	err := server.Serve(listener)
	cancel()
	running.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *Server) newHandler() http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the name is constant and valid
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/stream", s.stream)
	mux.HandleFunc("GET /api/item/{namespace}/{name}", s.handleRead(s.readItem))
	mux.HandleFunc("GET /api/objects/{namespace}/{name}", s.handleRead(s.readObjects))
	mux.HandleFunc("POST /api/plan/{namespace}/{name}", s.handleRead(s.readPlan))
	return mux
}

// followDeployers reads the leases of the deployers again and again until ctx is done.
func (s *Server) followDeployers(ctx context.Context) {
	for ctx.Err() == nil {
		list := readDeployers(ctx, s.host, s.options.Clock)
		s.mu.Lock()
		s.deployers = list
		s.mu.Unlock()
		waitFor(ctx, leaseInterval)
	}
}

func (s *Server) getDeployers() deployerList {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deployers
}

// pageStatus is the message about the server and the deployers.
type pageStatus struct {
	watchStatus
	deployerList

	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster"`
	CanPlan   bool   `json:"canPlan"`
	Timeline  bool   `json:"timeline"`
	Now       int64  `json:"now"`
}

// stream sends server-sent events: first all rows, then changed rows, and the status whenever it changes or after keepAlive.
func (s *Server) stream(w http.ResponseWriter, req *http.Request) {
	sub := s.store.subscribe(maxStreams)
	if sub == nil {
		http.Error(w, "The page is open too often.", http.StatusServiceUnavailable)
		return
	}
	defer sub.close()
	out := &eventWriter{w: w, control: http.NewResponseController(w), clock: s.options.Clock}
	w.Header().Set("Content-Type", "text/event-stream")
	out.send("reset", struct{}{})
	var last string
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for sent := s.options.Clock.Now(); out.err == nil; {
		for _, changes := range sub.take() {
			out.send("rows", changes)
		}
		status := s.getStatus()
		now := s.options.Clock.Now()
		if key := fmt.Sprintf("%+v", status); key != last || now.Sub(sent) > keepAlive {
			last, sent, status.Now = key, now, now.UnixMilli()
			out.send("status", status)
		}
		select {
		case <-req.Context().Done():
			return
		case <-sub.changed:
			waitFor(req.Context(), collectPeriod)
		case <-tick.C:
		}
	}
}

func (s *Server) getStatus() pageStatus {
	return pageStatus{
		watchStatus: s.watcher.status(), deployerList: s.getDeployers(), Namespace: s.options.Namespace, Cluster: s.options.Config.Host,
		CanPlan: s.options.Plan != nil, Timeline: s.options.History != nil,
	}
}

// eventWriter writes server-sent events. After an error, it writes nothing.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	clock   clock.PassiveClock
	err     error
}

func (e *eventWriter) send(event string, value any) {
	raw, err := json.Marshal(value) // escapes line breaks, so that the data is a single line
	if e.err = errors.Join(e.err, err); e.err != nil {
		return
	}
	if err := e.control.SetWriteDeadline(e.clock.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		e.err = err
		return
	}
	if _, e.err = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", event, raw); e.err == nil {
		e.err = e.control.Flush()
	}
}
