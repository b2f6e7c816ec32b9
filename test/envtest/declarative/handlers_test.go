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

// settings is the Go type of spec.config in these specs. It maps the names of ConfigMaps to their data.
type settings struct {
	Maps map[string]map[string]string `json:"maps"`
}

// config returns a configuration with the given ConfigMaps.
func config(configMaps map[string]map[string]string) map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Config", "maps": configMaps}
}

type (
	data   = map[string]string
	object = map[string]any
)

// configMap returns a ConfigMap for a handler to return.
func configMap(name string, data map[string]string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": data}
}

// newConfigMaps returns the ConfigMaps that the configuration describes, sorted by name.
func newConfigMaps(req *declarative.SyncRequest) ([]any, error) {
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

// handleWithCounts is a handler that returns the ConfigMaps in the configuration. Its status describes the ConfigMaps
// that it observed.
func handleWithCounts(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	wanted, err := newConfigMaps(req)
	if err != nil {
		return nil, err
	}
	seen := object{}
	for _, child := range req.Children {
		seen[child.Name()] = child.GetString("data", "seen")
	}
	return &declarative.SyncResponse{Status: object{"seen": seen}, Children: wanted}, nil
}

// recordingHandler is a handler that counts and records its calls.
type recordingHandler struct {
	declarative.Handler

	mu      sync.Mutex
	calls   map[string][]*declarative.SyncRequest
	times   map[string][]time.Time
	running map[types.UID]int
	most    int // maximum number of calls for one item at the same time
}

func newRecordingHandler(handler declarative.Handler) *recordingHandler {
	return &recordingHandler{Handler: handler, calls: map[string][]*declarative.SyncRequest{}, times: map[string][]time.Time{}, running: map[types.UID]int{}}
}

// Sync implements declarative.Handler.
func (h *recordingHandler) Sync(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
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

// getFirstRequest returns the first request for an item, or nil if the handler was not called for the item.
func (h *recordingHandler) getFirstRequest(item string) *declarative.SyncRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.calls[item]) == 0 {
		return nil
	}
	return h.calls[item][0]
}

// getCallCount returns a function that returns the number of calls for an item.
func (h *recordingHandler) getCallCount(item string) func() int {
	return func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.calls[item])
	}
}

// getStartTimes returns the start times of the calls for an item.
func (h *recordingHandler) getStartTimes(item string) []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.times[item])
}

// last returns the last request for an item.
func (h *recordingHandler) last(item string) *declarative.SyncRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls[item]
	return calls[len(calls)-1]
}

// newLiveHandler returns a handler. Each call of the handler returns the children that `answer` contains at the time of
// the call.
func newLiveHandler(answer *atomic.Value) declarative.HandlerFunc {
	return func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		children, _ := answer.Load().([]any)
		return &declarative.SyncResponse{Children: children}, nil
	}
}

// listNames returns the names of children.
func listNames(children declarative.Children) []string {
	var out []string
	for _, child := range children {
		out = append(out, child.Name())
	}
	return out
}
