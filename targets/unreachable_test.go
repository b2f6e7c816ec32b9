// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/targets"
)

// newHungServer starts a server that accepts connections and never responds.
func newHungServer(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []io.Closer
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range append(open, listener) {
			_ = c.Close()
		}
	})
	return "https://" + listener.Addr().String()
}

// getUnusedAddress returns the address of a port on which nothing listens.
func getUnusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return "https://" + listener.Addr().String()
}

func newTargetAt(t *testing.T, url string) string {
	t.Helper()
	return wrapKubeconfig(t, newKubeconfig("server: "+url, okUser, ""))
}

func expectUnreachable(t *testing.T, p *targets.Pool, name, content string) *targets.UnreachableError {
	t.Helper()
	c, err := p.Get(t.Context(), newResolvedTarget(name, content))
	down, ok := errors.AsType[*targets.UnreachableError](err)
	if !ok || down.RetryAfter <= 0 {
		t.Fatalf("Get() = %v, %v, want an UnreachableError with a time", c, err)
	}
	mustHideCanary(t, err)
	return down
}

// TestGetFailsFastForUnavailableTarget checks that, after the first failed attempt, every Get returns immediately, and
// that the pauses between attempts grow.
func TestGetFailsFastForUnavailableTarget(t *testing.T) {
	for name, url := range map[string]string{"no server listens": getUnusedAddress(t), "the server does not respond": newHungServer(t)} {
		t.Run("returns an error immediately if "+name, func(t *testing.T) {
			clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			p := newPool(t, targets.PoolOptions{Clock: clk, ConnectTimeout: 200 * time.Millisecond})
			content := newTargetAt(t, url)
			if down := expectUnreachable(t, p, "a", content); down.Err == nil || down.RetryAfter > time.Second {
				t.Errorf("first failure: %v, again after %s", down, down.RetryAfter)
			}
			start := time.Now()
			for range 100 {
				_ = expectUnreachable(t, p, "a", content)
			}
			if took := time.Since(start); took > testtime.ScaleTimeout(time.Second) {
				t.Errorf("100 calls for a target that is known to be down took %s", took)
			}
			for _, pause := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
				clk.SetTime(clk.Now().Add(time.Minute))
				_ = expectUnreachable(t, p, "a", content)
				waitUntil(t, func() bool { return expectUnreachable(t, p, "a", content).RetryAfter > pause*time.Second*8/10 })
				if down := expectUnreachable(t, p, "a", content); down.RetryAfter > pause*time.Second {
					t.Errorf("again after %s, want at most %s", down.RetryAfter, pause*time.Second)
				}
			}
		})
	}
}

// waitUntil polls until the condition is true.
func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testtime.ScaleTimeout(20*time.Second))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("did not come about in time")
		}
	}
}

// TestGetWaitsOnceForSilentTarget checks that all callers together wait for a silent target only once.
func TestGetWaitsOnceForSilentTarget(t *testing.T) {
	p := newPool(t, targets.PoolOptions{GetTimeout: 300 * time.Millisecond, ConnectTimeout: 30 * time.Second})
	content := newTargetAt(t, newHungServer(t))
	start := time.Now()
	for range 20 {
		if down := expectUnreachable(t, p, "a", content); down.Err != nil {
			t.Errorf("error %v, want none yet", down)
		}
	}
	if took := time.Since(start); took > testtime.ScaleTimeout(2*time.Second) {
		t.Errorf("20 calls took %s, want 300 ms together", took)
	}
	t.Run("ends earlier if the context of the caller ends", func(t *testing.T) {
		patient := newPool(t, targets.PoolOptions{ConnectTimeout: 30 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := patient.Get(ctx, newResolvedTarget("a", content)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// TestTargetBecomesUnavailable checks that after three requests without a response, further requests fail immediately.
// It also checks that the client notices when the target responds again.
func TestTargetBecomesUnavailable(t *testing.T) {
	api := newAPI(t, "t")
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	p := newPool(t, targets.PoolOptions{Clock: clk, RequestTimeout: testtime.ScaleTimeout(500 * time.Millisecond)})
	content := api.newContent(t, "t")
	c := getClient(t, p, newResolvedTarget("a", content))
	silence := make(chan struct{})
	api.set(func() {
		api.handle = func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-silence:
				return false
			case <-r.Context().Done():
				return true
			}
		}
	})
	for range 3 {
		if err := use(t.Context(), c); err == nil {
			t.Fatal("no error")
		}
	}
	asked := api.getCount("/api/v1/namespaces/default/configmaps/cm")
	if _, ok := errors.AsType[*targets.UnreachableError](use(t.Context(), c)); !ok {
		t.Error("a request to a target that is down is not refused")
	}
	_ = expectUnreachable(t, p, "a", content)
	if now := api.getCount("/api/v1/namespaces/default/configmaps/cm"); now != asked {
		t.Errorf("%d requests, want %d: none while it is down", now, asked)
	}
	close(silence)
	clk.SetTime(clk.Now().Add(time.Minute))
	waitUntil(t, func() bool { _, err := p.Get(t.Context(), newResolvedTarget("a", content)); return err == nil })
	if err := use(t.Context(), c); err != nil {
		t.Errorf("after it came back: %v", err)
	}
	if api.getCount("/api") != 1 {
		t.Errorf("%d discoveries, want 1", api.getCount("/api"))
	}
}

// TestCanceledRequestDoesNotCountAgainstTarget checks that a cancelled request does not count against the target.
func TestCanceledRequestDoesNotCountAgainstTarget(t *testing.T) {
	api := newAPI(t, "t")
	p := newPool(t, targets.PoolOptions{})
	c := getClient(t, p, newResolvedTarget("a", api.newContent(t, "t")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if err := use(ctx, c); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
	}
	if err := use(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// TestNewCredentialsAreTriedAtOnce checks that new credentials are tried immediately after the target rejected the old
// credentials.
func TestNewCredentialsAreTriedAtOnce(t *testing.T) {
	api := newAPI(t, "new")
	p := newPool(t, targets.PoolOptions{MinPause: time.Hour, MaxPause: time.Hour})
	if down := expectUnreachable(t, p, "a", api.newContent(t, "old")); down.RetryAfter < 30*time.Minute {
		t.Errorf("again after %s", down.RetryAfter)
	}
	getClient(t, p, newResolvedTarget("a", api.newContent(t, "new")))
}

// TestDiscoveryErrorsAreNotRetriedInLoop checks that the client does not send requests in a loop to a target that
// returns only errors.
func TestDiscoveryErrorsAreNotRetriedInLoop(t *testing.T) {
	api := newAPI(t)
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	p := newPool(t, targets.PoolOptions{Clock: clk})
	content := api.newContent(t, "t")
	_ = expectUnreachable(t, p, "a", content)
	clk.SetTime(clk.Now().Add(time.Second))
	_ = expectUnreachable(t, p, "a", content)
	waitUntil(t, func() bool {
		_, err := p.Get(t.Context(), newResolvedTarget("a", content))
		return after(err) > 1500*time.Millisecond
	})
}

func after(err error) time.Duration {
	if down, ok := errors.AsType[*targets.UnreachableError](err); ok {
		return down.RetryAfter
	}
	return 0
}
