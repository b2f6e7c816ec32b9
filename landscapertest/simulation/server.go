// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/internal/apirequest"
)

// maxBody is the maximum size of the body of a request.
const maxBody = 3 << 20

// Request describes a request to a Server.
type Request struct {
	// Client is the name of the client, such as "replica-1".
	Client string
	// Verb is get, list, watch, create, update, patch or delete.
	Verb string
	// Group, Resource and Subresource are spelled as in URLs.
	Group, Resource, Subresource string
	// Namespace and Name are those of the object. Name is empty for create, list and watch.
	Namespace, Name string
	// Nth is the number of this request among the requests with the same values of the other fields, from 1.
	Nth int

	process *Process        // the client
	holder  *Process        // the holder of the lease when the request was sent
	gaveUp  <-chan struct{} // closed when the client no longer waits for the response
	target  string          // the name of the target whose server receives the request, or ""
	created string          // the name of the object that the request creates
	deleted int             // the result of World.countDeletions when the request was sent
}

// String describes the request in one line.
func (r Request) String() string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s %s/%s #%d", r.Client, r.Verb, resource, r.Namespace, r.Name, r.Nth)
}

// IsWrite reports whether the request may change an object.
func (r Request) IsWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb)
}

// Write is a change of an object in a Server. A request that changes nothing is not a Write.
type Write struct {
	// Request is the request that made the change.
	Request Request
	// Target is the name of the target whose server was changed. It is empty for the server with the deploy items.
	Target string
	// ByReplica is true if a deployer made the change.
	ByReplica bool
	// Late is true if a deployer sent the request while it held the lease, and another process has got the lease since, or
	// if the deployer gave up the request, and any item has been deleted since, or a deployer has deleted the object of the
	// request. No deployer can prevent this, because a network can deliver a request at any time.
	Late bool
	// Version is the resource version of the change.
	Version int64
	// Before and After are the states of the object. Before is nil after a creation, After is nil after a deletion. They
	// must not be changed.
	Before, After *unstructured.Unstructured
	// Items are the deploy items after the change. They must not be changed.
	Items []*lsv1alpha1.DeployItem
}

// Server is an API server in memory, without a network. It has resource versions, optimistic locking, finalizers,
// generations, server-side apply, status subresources, lists in pages, and watches with bookmarks that can expire. It
// does not validate objects, has no admission and no garbage collection, and serves no tables. A Server is safe for
// concurrent use. It holds its lock only while it computes, so that goroutines in a bubble of package synctest never
// wait for the lock while time passes.
type Server struct {
	groupVersions []schema.GroupVersion
	resources     []*resource

	mu      sync.Mutex
	version int64
	// tracksFields is false if updates do not record managed fields, which takes time. Server-side apply always does.
	tracksFields bool
	cluster      uint32 // the first part of all UIDs
	created      int
	log          []change
	expired      int64         // watches cannot continue from an older version
	changed      chan struct{} // closed at the next change
	pages        []*page
	pageID       int
	observe      func(Write) // called with the lock
	denied       func(Request) error
}

// NewServer returns an empty server with the given kinds.
func NewServer(kinds ...Kind) (*Server, error) {
	s := &Server{version: 1, tracksFields: true, changed: make(chan struct{})}
	for _, k := range kinds {
		fields, err := newFieldManager(k)
		if err != nil {
			return nil, err
		}
		s.resources = append(s.resources, newResource(k, fields))
		if !slices.Contains(s.groupVersions, k.GroupVersion()) {
			s.groupVersions = append(s.groupVersions, k.GroupVersion())
		}
	}
	return s, nil
}

// NewConfig returns a config for clients of the server. Their requests take no time and have no faults.
func (s *Server) NewConfig() *rest.Config {
	return &rest.Config{
		Host: "http://simulated", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
		Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			body, err := readBody(req)
			if err != nil {
				return nil, err
			}
			sent, about := req.Clone(req.Context()), describe("", req)
			sent.Body = io.NopCloser(bytes.NewReader(body))
			return s.serve(sent, &about), nil
		}),
	}
}

// Get returns the state of an object, or nil if it does not exist. The result must not be changed.
func (s *Server) Get(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(kind, objectKey{Namespace: namespace, Name: name})
}

// get is Get for callers that hold the lock.
func (s *Server) get(kind schema.GroupVersionKind, key objectKey) object {
	for _, r := range s.resources {
		if r.GroupVersionKind == kind {
			return r.objects[key]
		}
	}
	return nil
}

// List returns all objects of a kind, sorted by namespace and name. The results must not be changed.
func (s *Server) List(kind schema.GroupVersionKind) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.resources {
		if r.GroupVersionKind == kind {
			return r.sorted("")
		}
	}
	return nil
}

// ExpireWatches ends all watches with the error that their version has expired. Their clients must list all objects
// again.
func (s *Server) ExpireWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++ // the versions of all watches are now older than the current version
	s.expire(s.version)
	close(s.changed)
	s.changed = make(chan struct{})
}

// serve responds to a request. by describes the request; it is the zero value for discovery requests.
func (s *Server) serve(req *http.Request, by *Request) *http.Response {
	res, err := s.handle(req, by)
	if err != nil {
		return newErrorResponse(req, err)
	}
	return res
}

// handle responds to a request or returns the error with which the server refuses it.
func (s *Server) handle(req *http.Request, by *Request) (*http.Response, error) {
	if by.Resource == "" {
		return s.handleDiscovery(req)
	}
	r := s.find(by.Group, by.Resource)
	if r == nil || by.Subresource != "" && (by.Subresource != statusSubresource || !r.HasStatus) {
		return nil, apierrors.NewGenericServerResponse(http.StatusNotFound, by.Verb, schema.GroupResource{Group: by.Group, Resource: by.Resource}, by.Name, "404 page not found", 0, true)
	}
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.denied != nil {
		if err := s.denied(*by); err != nil {
			return nil, err
		}
	}
	switch by.Verb {
	case "list":
		return s.handleList(req, r, by)
	case "watch":
		return s.handleWatch(req, r, by)
	}
	obj, status, err := s.handleObject(req, r, by, body)
	if err != nil {
		return nil, err
	}
	return newObjectResponse(req, status, obj)
}

// handleObject handles a request for one object. The caller holds the lock.
func (s *Server) handleObject(req *http.Request, r *resource, by *Request, body []byte) (object, int, error) {
	if by.Verb == "create" {
		obj, err := decodeObject(body)
		if err != nil {
			return nil, 0, err
		}
		return s.handleCreate(req, r, by, obj)
	}
	stored := r.objects[objectKey{Namespace: by.Namespace, Name: by.Name}]
	if by.Verb == "patch" {
		return s.handlePatch(req, r, by, stored, body)
	}
	if stored == nil {
		return nil, 0, apierrors.NewNotFound(r.groupResource(), by.Name)
	}
	switch by.Verb {
	case "get":
		return stored, http.StatusOK, nil
	case "update":
		obj, err := decodeObject(body)
		if err != nil {
			return nil, 0, err
		}
		return s.storeUpdate(req, r, by, stored, obj)
	case "delete":
		return s.handleDelete(req, r, by, stored, body)
	}
	return nil, 0, apierrors.NewMethodNotSupported(r.groupResource(), by.Verb)
}

// handleDelete deletes an object, if it meets the preconditions.
func (s *Server) handleDelete(req *http.Request, r *resource, by *Request, stored object, body []byte) (object, int, error) {
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		if err := decodeInto(body, options); err != nil {
			return nil, 0, err
		}
	}
	if isDryRun(req.URL.Query()) || len(options.DryRun) > 0 {
		return stored, http.StatusOK, nil
	}
	obj, err := s.remove(r, by, stored, options.Preconditions)
	return obj, http.StatusOK, err
}

// handleCreate creates an object, after the fields of its manager have been recorded.
func (s *Server) handleCreate(req *http.Request, r *resource, by *Request, obj object) (object, int, error) {
	obj.SetNamespace(by.Namespace)
	obj.SetGroupVersionKind(r.GroupVersionKind)
	obj = s.recordFields(req, r, newObject(r.GroupVersionKind), obj)
	if isDryRun(req.URL.Query()) {
		return obj, http.StatusCreated, nil
	}
	obj, err := s.create(r, by, obj)
	return obj, http.StatusCreated, err
}

// storeUpdate stores a new state of an object, after the fields of its manager have been recorded.
func (s *Server) storeUpdate(req *http.Request, r *resource, by *Request, stored, obj object) (object, int, error) {
	if err := checkPreconditions(r, stored, obj.GetUID(), obj.GetResourceVersion()); err != nil {
		return nil, 0, err
	}
	s.keepFields(r, by.Subresource, stored, obj)
	obj = s.recordFields(req, r, stored, obj)
	if isDryRun(req.URL.Query()) {
		return obj, http.StatusOK, nil
	}
	obj, err := s.update(r, by, stored, obj)
	return obj, http.StatusOK, err
}

// recordFields updates metadata.managedFields of obj, as after an update by the manager of the request.
func (s *Server) recordFields(req *http.Request, r *resource, stored, obj object) object {
	if !s.tracksFields {
		return obj
	}
	recorded, ok := r.fields.UpdateNoErrors(stored, obj, getManager(req)).(*unstructured.Unstructured)
	if !ok {
		return obj
	}
	return recorded
}

// getManager returns the field manager of a request. By default, it is the beginning of the user agent.
func getManager(req *http.Request) string {
	if name := req.URL.Query().Get("fieldManager"); name != "" {
		return name
	}
	name, _, _ := strings.Cut(req.UserAgent(), "/")
	return name
}

func isDryRun(query url.Values) bool { return query.Get("dryRun") == metav1.DryRunAll }

// find returns a resource, or nil if the server does not serve it.
func (s *Server) find(group, name string) *resource {
	for _, r := range s.resources {
		if r.Group == group && r.Resource == name {
			return r
		}
	}
	return nil
}

// handleDiscovery responds to the requests with which clients find the kinds of the server.
func (s *Server) handleDiscovery(req *http.Request) (*http.Response, error) {
	aggregated := strings.Contains(req.Header.Get("Accept"), "as=APIGroupDiscoveryList")
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case req.URL.Path == "/version":
		return newResponse(req, http.StatusOK, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.0"})
	case (req.URL.Path == "/api" || req.URL.Path == "/apis") && aggregated:
		res, err := newResponse(req, http.StatusOK, s.discoverGroups(req.URL.Path == "/api"))
		if err == nil {
			res.Header.Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		}
		return res, err
	case req.URL.Path == "/api":
		return newResponse(req, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case req.URL.Path == "/apis":
		return newResponse(req, http.StatusOK, s.listGroups())
	}
	gv := schema.GroupVersion{Version: parts[len(parts)-1]}
	if len(parts) == 3 {
		gv.Group = parts[1]
	}
	if list := s.listResources(gv); list != nil {
		return newResponse(req, http.StatusOK, list)
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
}

// readBody reads the body of a request, which is limited in size.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err := errors.Join(err, req.Body.Close()); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body, nil
}

// decodeObject decodes an object in JSON, or in another format of the kinds of Kubernetes.
func decodeObject(body []byte) (object, error) {
	obj := &unstructured.Unstructured{}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		if err := obj.UnmarshalJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return obj, nil
	}
	typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if obj.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return obj, nil
}

// decodeInto decodes the options of a request.
func decodeInto(body []byte, into runtime.Object) error {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		if err := json.Unmarshal(body, into); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func newInvalid(r *resource, name, path, message string) error {
	return apierrors.NewInvalid(r.GroupKind(), name, field.ErrorList{field.Forbidden(field.NewPath(path), message)})
}

// describe returns the description of a request, without Nth.
func describe(client string, req *http.Request) Request {
	about, ok := apirequest.Parse(req.Method, req.URL)
	if !ok {
		return Request{Client: client, Verb: strings.ToLower(req.Method)}
	}
	return Request{
		Client: client, Verb: about.Verb, Group: about.Group, Resource: about.Resource, Subresource: about.Subresource,
		Namespace: about.Namespace, Name: about.Name,
	}
}
