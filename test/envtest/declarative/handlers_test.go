// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/declarative"
)

var (
	configMapKind  = declarative.ChildKind{APIVersion: "v1", Kind: "ConfigMap"}
	podKind        = declarative.ChildKind{APIVersion: "v1", Kind: "Pod"}
	secretKind     = declarative.ChildKind{APIVersion: "v1", Kind: "Secret"}
	serviceKind    = declarative.ChildKind{APIVersion: "v1", Kind: "Service"}
	deploymentKind = declarative.ChildKind{APIVersion: "apps/v1", Kind: "Deployment"}
)

// settings is the configuration of the specs' items: ConfigMaps by name with their data.
type settings struct {
	Maps map[string]map[string]string `json:"maps"`
}

// config is a configuration for an item.
func config(configMaps map[string]map[string]string) map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Config", "maps": configMaps}
}

type (
	data   = map[string]string
	object = map[string]any
)

// configMap is a child.
func configMap(name string, data map[string]string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": data}
}

// children makes the children of a configuration, in the order of their names.
func children(req *declarative.SyncRequest) ([]any, error) {
	config, err := declarative.Config[settings](req)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, name := range slices.Sorted(maps.Keys(config.Maps)) {
		out = append(out, configMap(name, config.Maps[name]))
	}
	return out, nil
}

// counting is a handler of ConfigMaps whose status is what it observes.
func counting(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	wanted, err := children(req)
	if err != nil {
		return nil, err
	}
	seen := object{}
	for _, child := range req.Children {
		seen[child.Name()] = child.Text("data", "seen")
	}
	return &declarative.SyncResponse{Status: object{"seen": seen}, Children: wanted}, nil
}

// watched counts the calls of a handler.
type watched struct {
	declarative.Handler

	mu      sync.Mutex
	calls   map[string][]*declarative.SyncRequest
	times   map[string][]time.Time
	running map[types.UID]int
	most    int // calls for one item at a time
}

func watch(handler declarative.Handler) *watched {
	return &watched{Handler: handler, calls: map[string][]*declarative.SyncRequest{}, times: map[string][]time.Time{}, running: map[types.UID]int{}}
}

// Sync implements declarative.Handler.
func (h *watched) Sync(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	h.mu.Lock()
	h.calls[req.Item.Name] = append(h.calls[req.Item.Name], req)
	h.times[req.Item.Name] = append(h.times[req.Item.Name], time.Now())
	h.running[req.Item.UID]++
	h.most = max(h.most, h.running[req.Item.UID])
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.running[req.Item.UID]--
	}()
	return h.Handler.Sync(ctx, req)
}

// first returns the first call for an item, or nil if there was none.
func (h *watched) first(item string) *declarative.SyncRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.calls[item]) == 0 {
		return nil
	}
	return h.calls[item][0]
}

// count returns how often the handler was called for an item.
func (h *watched) count(item string) func() int {
	return func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.calls[item])
	}
}

// began returns when each call for an item began.
func (h *watched) began(item string) []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.times[item])
}

// last is the last request for an item.
func (h *watched) last(item string) *declarative.SyncRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls[item]
	return calls[len(calls)-1]
}

// live returns what is stored at the moment, for each item.
func live(answer *atomic.Value) declarative.HandlerFunc {
	return func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		children, _ := answer.Load().([]any)
		return &declarative.SyncResponse{Children: children}, nil
	}
}
