// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// kinds contains the resources that a server without behaviours serves. It maps the name of each resource to its kind.
var kinds = map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "namespaces": "Namespace"}

// store implements the parts of an API server that clients need. It stores objects in memory. It has no validation,
// defaults, managed fields or admission. A server-side apply merges the body into the object.
type store struct {
	mu      sync.Mutex
	objects map[location]map[string]any
	version int
	changed chan struct{} // closed at the next change
	log     []event
}

// event is a change of an object.
type event struct {
	kind     string
	location location
	version  int
	object   map[string]any
}

func newStore() *store {
	return &store{objects: map[location]map[string]any{}, version: 1, changed: make(chan struct{})}
}

type endKey struct{}

func withServerClosed(ctx context.Context, ended <-chan struct{}) context.Context {
	return context.WithValue(ctx, endKey{}, ended)
}

// ServerClosed returns a channel that is closed when the server that received the request is closed. A Behaviour that
// blocks must return when this channel is closed.
func ServerClosed(r *http.Request) <-chan struct{} {
	ended, _ := r.Context().Value(endKey{}).(<-chan struct{})
	return ended
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := parsePath(r.URL.Path)
	switch {
	case r.URL.Path == "/version":
		WriteJSON(w, http.StatusOK, map[string]any{"gitVersion": "v1.36.0", "major": "1", "minor": "36"})
	case IsDiscovery(r):
		s.serveDiscovery(w, r)
	case kinds[at.resource] == "":
		WriteStatus(w, http.StatusNotFound, "NotFound", "there is no such resource")
	case IsWatch(r):
		s.watch(w, r, at)
	case r.Method == http.MethodGet && at.name == "":
		s.list(w, r, at)
	case r.Method == http.MethodGet:
		s.get(w, r, at)
	case r.Method == http.MethodDelete:
		s.remove(w, at)
	default:
		s.put(w, r, at)
	}
}

// WriteJSON writes a response.
func WriteJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}

// WriteStatus writes an error response.
func WriteStatus(w http.ResponseWriter, code int, reason, message string) {
	WriteJSON(w, code, status(code, reason, message))
}

func status(code int, reason, message string) map[string]any {
	return map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": message}
}

func (s *store) serveDiscovery(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api" && r.URL.Path != "/apis" {
		WriteStatus(w, http.StatusNotFound, "NotFound", "there is no such group")
		return
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	var items []any
	if r.URL.Path == "/api" {
		items = append(items, group("", kinds))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": map[string]any{}, "items": items})
}

// group returns the entry for an API group in an aggregated discovery document.
func group(name string, kinds map[string]string) map[string]any {
	var resources []any
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		scope := "Namespaced"
		if resource == "namespaces" {
			scope = "Cluster"
		}
		resources = append(resources, map[string]any{
			"resource": resource, "responseKind": map[string]any{"group": name, "version": "v1", "kind": kinds[resource]}, "scope": scope,
			"singularResource": strings.TrimSuffix(resource, "s"), "verbs": []string{"get", "list", "watch", "create", "patch", "update", "delete"},
		})
	}
	return map[string]any{"metadata": map[string]any{"name": name}, "versions": []any{map[string]any{"version": "v1", "freshness": "Current", "resources": resources}}}
}

func (s *store) get(w http.ResponseWriter, r *http.Request, at location) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, found := s.objects[at]
	if !found {
		WriteStatus(w, http.StatusNotFound, "NotFound", at.resource+" "+strconv.Quote(at.name)+" not found")
		return
	}
	WriteJSON(w, http.StatusOK, selectMetadata(r, obj))
}

// selectMetadata returns an object in the form that the request asks for: the complete object, or only the metadata.
func selectMetadata(r *http.Request, obj map[string]any) map[string]any {
	if !isMetadataRequest(r) {
		return obj
	}
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
}

func isMetadataRequest(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
}

func (s *store) list(w http.ResponseWriter, r *http.Request, at location) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for where, obj := range s.objects {
		if where.resource == at.resource && (at.namespace == "" || at.namespace == where.namespace) && isSelected(r, obj) {
			items = append(items, selectMetadata(r, obj))
		}
	}
	kind, version := kinds[at.resource]+"List", "v1"
	if isMetadataRequest(r) {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	WriteJSON(w, http.StatusOK, map[string]any{
		"kind": kind, "apiVersion": version, "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	})
}

// isSelected reports whether the selectors in the request match an object. Label selectors may require a value or the
// existence of a label. Field selectors may only use metadata.name.
func isSelected(r *http.Request, obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	for _, want := range strings.FieldsFunc(r.URL.Query().Get("labelSelector"), func(r rune) bool { return r == ',' }) {
		key, value, equals := strings.Cut(want, "=")
		if got, has := labels[key]; !has || equals && got != value {
			return false
		}
	}
	name, isNamed := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	return !isNamed || meta["name"] == name
}

// put creates or updates an object.
func (s *store) put(w http.ResponseWriter, r *http.Request, at location) {
	var body map[string]any
	text, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil || json.Unmarshal(text, &body) != nil {
		WriteStatus(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType", "the body is not JSON")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	meta, _ := body["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		body["metadata"] = meta
	}
	code, kind := http.StatusOK, "MODIFIED"
	if at.name == "" {
		at.name, _ = meta["name"].(string)
	}
	old := s.objects[at]
	switch {
	case old == nil && r.Method == http.MethodPatch && !strings.Contains(r.Header.Get("Content-Type"), "apply"):
		WriteStatus(w, http.StatusNotFound, "NotFound", at.resource+" "+strconv.Quote(at.name)+" not found")
		return
	case old == nil:
		code, kind = http.StatusCreated, "ADDED"
		meta["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version)
		meta["creationTimestamp"] = time.Unix(0, 0).UTC().Format(time.RFC3339)
	case r.Method == http.MethodPost:
		WriteStatus(w, http.StatusConflict, "AlreadyExists", at.resource+" "+strconv.Quote(at.name)+" already exists")
		return
	default:
		body = merge(old, body)
		meta, _ = body["metadata"].(map[string]any)
	}
	meta["name"] = at.name
	if at.namespace != "" {
		meta["namespace"] = at.namespace
	}
	s.recordChange(kind, at, body)
	WriteJSON(w, code, body)
}

// merge applies a JSON merge patch.
func merge(old, change map[string]any) map[string]any {
	out := maps.Clone(old)
	for key, value := range change {
		inner, isObject := value.(map[string]any)
		before, wasObject := old[key].(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isObject && wasObject:
			out[key] = merge(before, inner)
		default:
			out[key] = value
		}
	}
	return out
}

func (s *store) remove(w http.ResponseWriter, at location) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, found := s.objects[at]
	if !found {
		WriteStatus(w, http.StatusNotFound, "NotFound", at.resource+" "+strconv.Quote(at.name)+" not found")
		return
	}
	s.recordChange("DELETED", at, maps.Clone(obj))
	WriteJSON(w, http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
}

// recordChange stores a change of an object and wakes up the watches. The caller holds the lock.
func (s *store) recordChange(kind string, at location, obj map[string]any) {
	s.version++
	meta, _ := obj["metadata"].(map[string]any)
	meta = maps.Clone(meta) // watches may still send the previous metadata
	meta["resourceVersion"] = strconv.Itoa(s.version)
	obj["metadata"] = meta
	s.objects[at] = obj
	if kind == "DELETED" {
		delete(s.objects, at)
	}
	s.log = append(s.log, event{kind: kind, location: at, version: s.version, object: maps.Clone(obj)})
	close(s.changed)
	s.changed = make(chan struct{})
}

// watch sends the changes after the resourceVersion in the request. If the request has no resourceVersion, it first
// sends all objects.
func (s *store) watch(w http.ResponseWriter, r *http.Request, at location) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := json.NewEncoder(w)
	seen, next := s.startWatch(r, at)
	for {
		s.mu.Lock()
		for _, e := range s.log {
			if e.version > seen && e.location.resource == at.resource && (at.namespace == "" || at.namespace == e.location.namespace) {
				next = append(next, map[string]any{"type": e.kind, "object": selectMetadata(r, e.object)})
			}
		}
		seen = s.version
		changed := s.changed
		s.mu.Unlock()
		for _, e := range next {
			if out.Encode(e) != nil {
				return
			}
		}
		next = nil
		_ = http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-ServerClosed(r):
			return
		}
	}
}

// startWatch returns the version at which a watch begins, and the first events of the watch.
func (s *store) startWatch(r *http.Request, at location) (seen int, first []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion")); err == nil && from > 0 && r.URL.Query().Get("sendInitialEvents") != "true" {
		return from, nil
	}
	for where, obj := range s.objects {
		if where.resource == at.resource && (at.namespace == "" || at.namespace == where.namespace) && isSelected(r, obj) {
			first = append(first, map[string]any{"type": "ADDED", "object": selectMetadata(r, obj)})
		}
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		first = append(first, map[string]any{"type": "BOOKMARK", "object": selectMetadata(r, bookmark(at, s.version))})
	}
	return s.version, first
}

// bookmark returns the event that marks the end of the existing objects in a streamed list.
func bookmark(at location, version int) map[string]any {
	return map[string]any{
		"kind": kinds[at.resource], "apiVersion": "v1",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version), "annotations": map[string]any{"k8s.io/initial-events-end": "true"}},
	}
}
