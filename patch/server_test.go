// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// gadget is a Go type that declares only some of the fields of its kind.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   gadgetSpec   `json:"spec"`
	Status gadgetStatus `json:"status"`
}

type gadgetSpec struct {
	Enabled  bool              `json:"enabled,omitempty"`
	Replicas int64             `json:"replicas"`
	Text     string            `json:"text,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	Sub      *gadgetSub        `json:"sub,omitempty"`
	Items    []gadgetItem      `json:"items,omitempty"`
}

type gadgetSub struct {
	Color string `json:"color,omitempty"`
}

type gadgetItem struct {
	Name  string `json:"name"`
	Image string `json:"image,omitempty"`
}

type gadgetStatus struct {
	State string `json:"state,omitempty"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	data, err := json.Marshal(g)
	out := &gadget{}
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

var gadgetKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Gadget"}

// server stores one object as JSON and responds like an API server. It stores every field, and applies patches with a
// separate implementation. The field `apart` determines whether the status is a subresource.
type server struct {
	client.Client // used only for the mapping of kinds

	body     map[string]any
	apart    bool
	requests []string                   // each with verb, subresource, content type and body
	refuse   func(request string) error // called before each request with "verb subresource"
}

// newServer returns a server with one gadget.
func newServer(tb testing.TB, members string) *server {
	tb.Helper()
	s := &server{Client: newKinds(), apart: true, body: object(tb, members)}
	s.body["apiVersion"], s.body["kind"] = "example.org/v1", "Gadget"
	metadata, _ := s.body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		s.body["metadata"] = metadata
	}
	maps.Copy(metadata, map[string]any{"name": "web", "namespace": "default", "uid": "first", "resourceVersion": "7"})
	return s
}

// newKinds returns a client for a separate cluster whose scheme contains the kind Gadget.
func newKinds() client.Client {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(gadgetKind, &gadget{})
	metav1.AddToGroupVersion(scheme, gadgetKind.GroupVersion())
	return fake.NewClientBuilder().WithScheme(scheme).Build()
}

func object(tb testing.TB, members string) map[string]any {
	tb.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(members), &out); err != nil {
		tb.Fatalf("bad fixture: %v", err)
	}
	return out
}

// typed returns the stored object as a gadget, and raw returns it as an unstructured object.
func (s *server) typed() client.Object { return s.into(&gadget{}) }
func (s *server) raw() client.Object   { return s.into(&unstructured.Unstructured{}) }

func (s *server) into(obj client.Object) client.Object {
	data, err := json.Marshal(s.body)
	if err == nil {
		reflect.ValueOf(obj).Elem().SetZero()
		err = json.Unmarshal(data, obj)
	}
	if err != nil {
		panic(err)
	}
	return obj
}

// applyChange changes the stored object on behalf of another client.
func (s *server) applyChange(change func(body map[string]any)) {
	change(s.body)
	s.incrementVersion()
}

func (s *server) incrementVersion() {
	metadata := s.body["metadata"].(map[string]any)
	version, _ := strconv.Atoi(metadata["resourceVersion"].(string))
	metadata["resourceVersion"] = strconv.Itoa(version + 1)
}

func (s *server) begin(verb, subresource string, kind types.PatchType, data []byte) error {
	s.requests = append(s.requests, fmt.Sprintf("%s %s %s %s", verb, subresource, kind, data))
	if s.refuse != nil {
		return s.refuse(verb + " " + subresource)
	}
	return nil
}

func (s *server) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if err := s.begin("get", "", "", nil); err != nil {
		return err
	}
	if s.body == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: "example.org", Resource: "gadgets"}, key.Name)
	}
	s.into(obj)
	return nil
}

func (s *server) Patch(_ context.Context, obj client.Object, p client.Patch, _ ...client.PatchOption) error {
	return s.patch("", obj, p)
}

func (s *server) Update(_ context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return s.update("", obj)
}

func (s *server) Status() client.SubResourceWriter { return s.SubResource("status") }

func (s *server) SubResource(string) client.SubResourceClient { return &serverStatus{server: s} }

type serverStatus struct {
	client.SubResourceClient

	server *server
}

func (s *serverStatus) Patch(_ context.Context, obj client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.server.patch("status", obj, p)
}

func (s *serverStatus) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.server.update("status", obj)
}

func (s *server) patch(subresource string, obj client.Object, p client.Patch) error {
	data, err := p.Data(obj)
	if err != nil {
		return err
	}
	if err := s.begin("patch", subresource, p.Type(), data); err != nil {
		return err
	}
	stored, err := json.Marshal(s.body)
	if err != nil {
		return err
	}
	if p.Type() == types.MergePatchType {
		stored, err = jsonpatch.MergePatch(stored, data)
	} else {
		var steps jsonpatch.Patch
		if steps, err = jsonpatch.DecodePatch(data); err == nil {
			stored, err = steps.Apply(stored)
		}
	}
	if err != nil {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: err.Error()}}
	}
	return s.store(subresource, obj, stored)
}

func (s *server) update(subresource string, obj client.Object) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	if err := s.begin("update", subresource, "", data); err != nil {
		return err
	}
	return s.store(subresource, obj, data)
}

// store checks the preconditions of a write and stores the part of the object that the endpoint writes.
func (s *server) store(subresource string, obj client.Object, data []byte) error {
	if s.body == nil || subresource == "status" && !s.apart {
		return apierrors.NewNotFound(schema.GroupResource{Group: "example.org", Resource: "gadgets"}, "web")
	}
	wanted := map[string]any{}
	if err := json.Unmarshal(data, &wanted); err != nil {
		return err
	}
	was, is := s.body["metadata"].(map[string]any), wanted["metadata"].(map[string]any)
	if is["resourceVersion"] != was["resourceVersion"] && is["resourceVersion"] != nil {
		return apierrors.NewConflict(schema.GroupResource{Group: "example.org", Resource: "gadgets"}, "web", fmt.Errorf("the object has been modified"))
	}
	if is["uid"] != was["uid"] && subresource == "" {
		return apierrors.NewInvalid(gadgetKind.GroupKind(), "web", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), is["uid"], "field is immutable")})
	}
	if s.apart {
		from, to := s.body, wanted
		if subresource == "status" {
			from, to = wanted, map[string]any{}
			maps.Copy(to, s.body)
		}
		delete(to, "status")
		if status, exists := from["status"]; exists {
			to["status"] = status
		}
		wanted = to
	}
	if !reflect.DeepEqual(wanted, s.body) {
		s.body = wanted
		s.incrementVersion()
	}
	s.into(obj)
	return nil
}
