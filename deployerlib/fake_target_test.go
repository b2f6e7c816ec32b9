// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

type object = map[string]any

// fakeTarget is the API server of a target, in memory. It serves ConfigMaps, which can be watched, Secrets, which
// cannot be watched, and Namespaces. It supports the requests that deployers send: reads, server-side apply and
// deletions. It is used as the transport of the clients.
type fakeTarget struct {
	mu            sync.Mutex
	objects       map[string]*unstructured.Unstructured // by path
	watches       map[*fakeWatch]bool
	version       int
	quotaExceeded bool                                  // a quota refuses the creation of objects
	writes        int                                   // the number of requests that write, including those that are refused
	events        int                                   // the number of events that were sent to watches
	removed       map[string]*unstructured.Unstructured // the last version of deleted objects, by path
}

// fakeWatch is an open watch of a collection.
type fakeWatch struct {
	path   string
	events chan object
	done   <-chan struct{}
}

func newFakeTarget() *fakeTarget {
	f := &fakeTarget{objects: map[string]*unstructured.Unstructured{}, watches: map[*fakeWatch]bool{}, removed: map[string]*unstructured.Unstructured{}}
	for _, name := range []string{"kube-system", ns} {
		f.objects["/api/v1/namespaces/"+name] = &unstructured.Unstructured{Object: object{
			"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name, "uid": "uid-" + name, "resourceVersion": "1"},
		}}
	}
	return f
}

// RoundTrip implements http.RoundTripper.
func (f *fakeTarget) RoundTrip(req *http.Request) (*http.Response, error) {
	path, query := req.URL.Path, req.URL.Query()
	switch {
	case path == "/api":
		return answer(200, object{"kind": "APIVersions", "versions": []any{"v1"}}), nil
	case path == "/apis":
		return answer(200, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}}), nil
	case path == "/api/v1":
		return answer(200, newResourceList()), nil
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return f.watch(req, path), nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	live, one := f.objects[path], strings.HasPrefix(path, "/api/v1/namespaces/") && !strings.HasSuffix(path, "/configmaps") && !strings.HasSuffix(path, "/secrets")
	switch {
	case req.Method == http.MethodGet && !one:
		return f.list(req, path), nil
	case req.Method == http.MethodPatch:
		return f.apply(req, path, live), nil
	case live == nil:
		return newNotFoundResponse(path), nil
	case req.Method == http.MethodGet:
		return answer(200, selectMetadata(req, live)), nil
	case req.Method == http.MethodDelete:
		f.writes++
		f.remove(path)
		return answer(200, object{"kind": "Status", "apiVersion": "v1", "status": "Success"}), nil
	}
	return newErrorResponse(405, metav1.StatusReasonMethodNotAllowed, req.Method), nil
}

func newResourceList() object {
	verbs := []any{"get", "list", "watch", "create", "update", "patch", "delete"}
	return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []any{
		object{"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": verbs},
		object{"name": "secrets", "singularName": "secret", "namespaced": true, "kind": "Secret", "verbs": verbs},
		object{"name": "namespaces", "singularName": "namespace", "namespaced": false, "kind": "Namespace", "verbs": verbs},
	}}
}

// list returns the objects of a collection, in one namespace or in all.
func (f *fakeTarget) list(req *http.Request, path string) *http.Response {
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		if isInCollection(key, path) {
			items = append(items, selectMetadata(req, f.objects[key]))
		}
	}
	kind := map[string]string{"configmaps": "ConfigMapList", "secrets": "SecretList", "namespaces": "NamespaceList"}[path[strings.LastIndexByte(path, '/')+1:]]
	version := "v1"
	if strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	return answer(200, object{"kind": kind, "apiVersion": version, "metadata": object{"resourceVersion": fmt.Sprint(f.version)}, "items": items})
}

// isInCollection reports whether the path of an object belongs to the path of a collection.
func isInCollection(key, collection string) bool {
	parts, plural := strings.Split(key, "/"), collection[strings.LastIndexByte(collection, '/')+1:]
	if len(parts) != 7 {
		return plural == "namespaces"
	}
	return parts[5] == plural && (strings.HasPrefix(key, collection+"/") || collection == "/api/v1/"+plural)
}

// selectMetadata returns an object, reduced to its metadata if the request asks for that.
func selectMetadata(req *http.Request, live *unstructured.Unstructured) object {
	out := live.DeepCopy()
	if strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return object{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": out.Object["metadata"]}
	}
	return out.Object
}

// apply handles a server-side apply.
func (f *fakeTarget) apply(req *http.Request, path string, live *unstructured.Unstructured) *http.Response {
	body := object{}
	raw, _ := io.ReadAll(req.Body)
	if err := json.Unmarshal(raw, &body); err != nil || req.Header.Get("Content-Type") != "application/apply-patch+yaml" {
		return newErrorResponse(400, metav1.StatusReasonBadRequest, "want a server-side apply in JSON")
	}
	dry := req.URL.Query().Get("dryRun") != ""
	if !dry {
		f.writes++
	}
	if live == nil {
		if f.quotaExceeded {
			return newErrorResponse(403, metav1.StatusReasonForbidden, "exceeded quota: few, requested: count=1, used: count=1, limited: count=1")
		}
		live = &unstructured.Unstructured{Object: object{"metadata": object{"uid": fmt.Sprint("uid-", f.version+1), "creationTimestamp": "2026-01-02T03:04:05Z"}}}
	}
	return answer(200, selectMetadata(req, f.write(path, live, body, req.URL.Query().Get("fieldManager"), metav1.ManagedFieldsOperationApply, dry)))
}

// write merges a body into an object, as the given field manager.
func (f *fakeTarget) write(path string, live *unstructured.Unstructured, body object, manager string, operation metav1.ManagedFieldsOperationType, dry bool) *unstructured.Unstructured {
	out := live.DeepCopy()
	owned := getFields(body, "")
	entries := []metav1.ManagedFieldsEntry{}
	for _, entry := range out.GetManagedFields() {
		fields := object{}
		_ = json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)
		if entry.Manager != manager {
			if removeFields(fields, owned); len(fields) > 0 {
				entry.FieldsV1 = metav1.NewFieldsV1(encodeJSON(fields))
				entries = append(entries, entry)
			}
		} else if operation == metav1.ManagedFieldsOperationUpdate {
			mergeFields(owned, fields)
		}
	}
	mergeFields(out.Object, body)
	entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(encodeJSON(owned))})
	out.SetManagedFields(entries)
	if dry || reflect.DeepEqual(out.Object, live.Object) {
		return out
	}
	kind := "MODIFIED"
	if f.objects[path] == nil {
		kind = "ADDED"
	}
	f.version++
	out.SetResourceVersion(fmt.Sprint(f.version))
	f.objects[path] = out
	f.sendEvent(kind, path, out)
	return out
}

// getFields returns the fields of a value in the form of managedFields.
func getFields(value object, path string) object {
	out := object{}
	for key, field := range value {
		below := path + "." + key
		if below == ".apiVersion" || below == ".kind" || below == ".metadata.name" || below == ".metadata.namespace" {
			continue
		}
		fields := object{}
		if nested, isMap := field.(object); isMap {
			if fields = getFields(nested, below); len(fields) == 0 {
				continue
			}
		}
		out["f:"+key] = fields
	}
	return out
}

// removeFields removes the fields in b from a.
func removeFields(a, b object) {
	for key, field := range b {
		nested, _ := a[key].(object)
		removeFields(nested, field.(object))
		if len(nested) == 0 {
			delete(a, key)
		}
	}
}

// mergeFields writes the fields of b into a.
func mergeFields(a, b object) {
	for key, field := range b {
		nested, isMap := field.(object)
		if below, both := a[key].(object); both && isMap {
			mergeFields(below, nested)
		} else {
			a[key] = field
		}
	}
}

func encodeJSON(value object) string {
	raw, _ := json.Marshal(value)
	return string(raw)
}

// setField changes a field of the data of a ConfigMap, as another client.
func (f *fakeTarget) setField(name, field, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := "/api/v1/namespaces/" + ns + "/configmaps/" + name
	if live := f.objects[path]; live != nil {
		f.write(path, live, object{"data": object{field: value}}, "editor", metav1.ManagedFieldsOperationUpdate, false)
	}
}

// delete deletes a ConfigMap, as another client.
func (f *fakeTarget) delete(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove("/api/v1/namespaces/" + ns + "/configmaps/" + name)
}

// createAgain creates a deleted ConfigMap again, as another client that restores a backup.
func (f *fakeTarget) createAgain(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := "/api/v1/namespaces/" + ns + "/configmaps/" + name
	if old := f.removed[path]; old != nil && f.objects[path] == nil {
		f.version++
		again := old.DeepCopy()
		again.SetUID(types.UID(fmt.Sprint("uid-", f.version)))
		again.SetResourceVersion(fmt.Sprint(f.version))
		f.objects[path] = again
		f.sendEvent("ADDED", path, again)
	}
}

// has reports whether a ConfigMap exists.
func (f *fakeTarget) has(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects["/api/v1/namespaces/"+ns+"/configmaps/"+name] != nil
}

// setQuotaExceeded sets whether a quota refuses the creation of objects. It returns the numbers of writes and events so
// far.
func (f *fakeTarget) setQuotaExceeded(full bool) (writes, events int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.quotaExceeded = full
	return f.writes, f.events
}

func (f *fakeTarget) remove(path string) {
	if live := f.objects[path]; live != nil {
		delete(f.objects, path)
		f.removed[path] = live
		f.version++
		gone := live.DeepCopy()
		gone.SetResourceVersion(fmt.Sprint(f.version))
		f.sendEvent("DELETED", path, gone)
	}
}

// sendEvent sends an event to all watches that select an object.
func (f *fakeTarget) sendEvent(kind, path string, live *unstructured.Unstructured) {
	for w := range f.watches {
		if !isInCollection(path, w.path) {
			continue
		}
		select {
		case w.events <- object{"type": kind, "object": live.DeepCopy().Object}:
			f.events++
		case <-w.done:
			delete(f.watches, w)
		}
	}
}

// watch opens a watch. The events before it was opened are not sent, because no client waits between a list and a
// watch.
func (f *fakeTarget) watch(req *http.Request, path string) *http.Response {
	switch {
	case strings.HasSuffix(path, "/secrets"):
		return newErrorResponse(403, metav1.StatusReasonForbidden, "secrets is forbidden: cannot watch resource secrets")
	case req.URL.Query().Get("sendInitialEvents") == "true":
		return newErrorResponse(422, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	}
	w := &fakeWatch{path: path, events: make(chan object, 10_000), done: req.Context().Done()}
	f.mu.Lock()
	f.watches[w] = true
	f.mu.Unlock()
	reader, writer := io.Pipe()
	go func() {
		for {
			select {
			case event := <-w.events:
				live := &unstructured.Unstructured{Object: event["object"].(object)}
				if _, err := fmt.Fprintln(writer, encodeJSON(object{"type": event["type"], "object": selectMetadata(req, live)})); err != nil {
					return
				}
			case <-w.done:
				_ = writer.CloseWithError(req.Context().Err())
				return
			}
		}
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: reader}
}

// answer returns a response with a JSON body.
func answer(code int, body object) *http.Response {
	raw, _ := json.Marshal(body)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)),
	}
}

// newErrorResponse returns a response with an error.
func newErrorResponse(code int, reason metav1.StatusReason, message string) *http.Response {
	return answer(code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": string(reason), "message": message})
}

// newNotFoundResponse returns the response for an object that does not exist.
func newNotFoundResponse(path string) *http.Response {
	parts := strings.Split(path, "/")
	kind, name := parts[len(parts)-2], parts[len(parts)-1]
	return answer(404, object{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": string(metav1.StatusReasonNotFound),
		"message": fmt.Sprintf("%s %q not found", kind, name), "details": object{"name": name, "kind": kind},
	})
}
