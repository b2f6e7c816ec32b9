// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/targets"
)

// TestHostileWatches ensures that the Watcher does not send requests in a hot loop. It covers several ways in which a
// target can end a watch.
func TestHostileWatches(t *testing.T) {
	for name, behaviour := range map[string]hostile.Behaviour{
		"a watch that ends with an event with code 410 is not repeated in a hot loop [F6]": hostile.WatchExpired(),
		"a watch that ends without an event is not repeated in a hot loop [F6]":            hostile.EmptyWatch(),
		"a watch in another format is not repeated in a hot loop [F6]":                     hostile.ContentType("application/yaml"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := hostile.New(hostile.When(hostile.IsWatch, behaviour))
			defer server.Close()
			pool := targets.NewPool(targets.PoolOptions{Policy: targets.Policy{AllowPrivateHosts: true}, GetTimeout: 10 * time.Second})
			defer pool.Close()
			c, err := pool.Get(t.Context(), &lsv1alpha1.ResolvedTarget{
				Target: &lsv1alpha1.Target{
					ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "a"},
					Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType},
				},
				Content: string(server.Kubeconfig("t")),
			})
			if err != nil {
				t.Fatal(err)
			}
			client, err := metadata.NewForConfigAndClient(c.Config(), c.HTTPClient())
			if err != nil {
				t.Fatal(err)
			}
			w := observe.New(client, observe.Options{SyncTimeout: time.Second})
			w.Start(t.Context())
			if _, err := w.Watch(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}); err != nil {
				t.Fatal(err)
			}
			// With pauses of 1 s and 2 s, there are at most four watches in four seconds, and at most one list for each
			// watch.
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for end := time.Now().Add(4 * time.Second); time.Now().Before(end); <-tick.C {
				if n := server.CountRequests(nil); n > 20 {
					t.Fatalf("%d requests in less than four seconds", n)
				}
			}
		})
	}
}
