// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/targets"
)

// sendSlowly makes the server respond to a request for a ConfigMap with headers and one byte. After that, the server
// sends nothing until the request ends.
func sendSlowly(a *fakeAPI, begun chan<- struct{}) {
	a.set(func() {
		a.handle = func(w http.ResponseWriter, req *http.Request) bool {
			if req.URL.Path != "/api/v1/namespaces/default/configmaps/cm" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			begun <- struct{}{}
			<-req.Context().Done()
			return true
		}
	})
}

func getConfigMap(ctx context.Context, c client.Client) error {
	return c.Get(ctx, types.NamespacedName{Namespace: "default", Name: "cm"}, &corev1.ConfigMap{})
}

// TestIncompleteBodyIsNoResponse checks that headers without a complete body do not count as a response.
func TestIncompleteBodyIsNoResponse(t *testing.T) {
	t.Run("incomplete responses mark the target as down [F4]", func(t *testing.T) {
		api := newAPI(t, "good")
		begun := make(chan struct{}, 10)
		p := newPool(t, targets.PoolOptions{RequestTimeout: testtime.ScaleTimeout(200 * time.Millisecond)})
		target := newResolvedTarget("a", api.newContent(t, "good"))
		c, err := p.Get(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		sendSlowly(api, begun)
		for range 3 {
			if err := getConfigMap(t.Context(), c); err == nil {
				t.Fatal("a response that never ends was taken for an object")
			}
			if got := p.GetHealth(client.ObjectKeyFromObject(target)); got != targets.HealthBad {
				t.Errorf("Health after a response that was given up: %s", got)
			}
		}
		if err := getConfigMap(t.Context(), c); !isUnreachable(err) || len(begun) != 3 {
			t.Errorf("after %d requests: %v, want the target to be down after 3", len(begun), err)
		}
		if got := p.GetHealth(client.ObjectKeyFromObject(target)); got != targets.HealthBad {
			t.Errorf("Health: %s", got)
		}
	})
	t.Run("incomplete responses make the target unhealthy until they end [F4]", func(t *testing.T) {
		api := newAPI(t, "good")
		begun := make(chan struct{}, 10)
		clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		p := newPool(t, targets.PoolOptions{Clock: clk})
		target := newResolvedTarget("a", api.newContent(t, "good"))
		health := func() string { return fmt.Sprint(p.GetHealth(client.ObjectKeyFromObject(target))) }
		got := []string{health()}
		c, err := p.Get(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, health())
		sendSlowly(api, begun)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- getConfigMap(ctx, c) }()
		<-begun
		clk.SetTime(clk.Now().Add(1900 * time.Millisecond))
		got = append(got, health())
		clk.SetTime(clk.Now().Add(100 * time.Millisecond))
		got = append(got, health())
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		got = append(got, health())
		if fmt.Sprint(got) != "[Unknown Good Stalled Bad Good]" {
			t.Errorf("before, connected, soon, after 2 s, ended: got %v", got)
		}
	})
}

func isUnreachable(err error) bool {
	_, ok := errors.AsType[*targets.UnreachableError](err)
	return ok
}
