// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// testOwner is the owner of the objects.
var testOwner = ownership.Owner{UID: "item", Landscape: "l", Namespace: "ns", Name: "n"}

// newInstalled is an item that installs a kind, an object of this kind, a webhook with its server, and an aggregated
// API. Its manifests are in the reverse order of the stages.
func newInstalled() []Desired {
	object := func(apiVersion, kind, namespace, name string, body map[string]any) Desired {
		obj := &unstructured.Unstructured{Object: body}
		if body == nil {
			obj.Object = map[string]any{}
		}
		obj.SetAPIVersion(apiVersion)
		obj.SetKind(kind)
		obj.SetNamespace(namespace)
		obj.SetName(name)
		return Desired{Object: obj}
	}
	return []Desired{
		object("apiregistration.k8s.io/v1", "APIService", "", "v1.example.org", nil),
		object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", "mutating", nil),
		object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "validating", nil),
		object("example.org/v1", "Thing", "shop", "thing", nil),
		object("apps/v1", "Deployment", "shop", "webhook", nil),
		object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "role", nil),
		object("v1", "Namespace", "", "shop", nil),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.org", map[string]any{"spec": map[string]any{
			"group": "example.org", "scope": "Namespaced", "names": map[string]any{"kind": "Thing", "plural": "things"},
			"versions": []any{map[string]any{"name": "v1"}},
		}}),
	}
}

func newInstalledMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, group := range map[string]schema.GroupVersion{
		"APIService": {Group: "apiregistration.k8s.io", Version: "v1"}, "Namespace": {Version: "v1"},
		"MutatingWebhookConfiguration":   {Group: "admissionregistration.k8s.io", Version: "v1"},
		"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1"},
		"ClusterRole":                    {Group: "rbac.authorization.k8s.io", Version: "v1"},
		"CustomResourceDefinition":       {Group: "apiextensions.k8s.io", Version: "v1"},
	} {
		mapper.Add(group.WithKind(kind), meta.RESTScopeRoot)
	}
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	return mapper
}

// applyServer is an API server that accepts every apply, apart from those in refuses, and records the names of the
// written and the read objects.
type applyServer struct {
	client.Client
	applyErrors map[string]error // by the name of the object
	readErrors  map[string]error // the errors of reads, by the name of the object
	objects     map[string]*unstructured.Unstructured
	written     []string
	read        []string
	deleted     []string
	// establishes is false if the definitions do not become established.
	establishes bool
}

func newApplyServer() *applyServer {
	s := &applyServer{applyErrors: map[string]error{}, readErrors: map[string]error{}, establishes: true}
	s.Client = interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(newInstalledMapper()).Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			s.read = append(s.read, key.Name)
			if live := s.objects[key.Name]; live != nil {
				return runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, obj)
			}
			if err := s.readErrors[key.Name]; err != nil {
				return err
			}
			return apierrors.NewNotFound(schema.GroupResource{Group: obj.GetObjectKind().GroupVersionKind().Group, Resource: "objects"}, key.Name)
		},
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
			s.deleted = append(s.deleted, obj.GetName())
			return nil
		},
		Apply: func(_ context.Context, _ client.WithWatch, body runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			data, err := json.Marshal(body)
			if err != nil {
				return err
			}
			obj := &unstructured.Unstructured{}
			if err := json.Unmarshal(data, &obj.Object); err != nil {
				return err
			}
			s.written = append(s.written, obj.GetName())
			if err := s.applyErrors[obj.GetName()]; err != nil {
				return err
			}
			obj.SetUID(types.UID("uid-of-" + obj.GetName()))
			obj.SetResourceVersion("1")
			if object.IsDefinition(obj.GroupVersionKind().GroupKind()) && s.establishes {
				obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
			}
			content := body.(interface{ SetUnstructuredContent(map[string]any) })
			content.SetUnstructuredContent(obj.Object)
			return nil
		},
	})
	return s
}

// apply applies the objects one at a time.
func (s *applyServer) apply(t *testing.T, inv Inventory, desired ...Desired) (Inventory, Report, error) {
	t.Helper()
	s.written, s.read, s.deleted = nil, nil, nil
	return New(s, newInstalledMapper(), Options{Concurrency: 1}).Apply(t.Context(), ownership.Owner{UID: "item"}, desired, inv)
}

func TestStagesAreAppliedInOrder(t *testing.T) {
	denied := func(name string) map[string]error {
		return map[string]error{name: apierrors.NewInternalError(errDenied)}
	}
	all := []string{"things.example.org", "shop", "role", "thing", "webhook", "v1.example.org", "mutating", "validating"}
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names, name) })
	}
	last := []string{"v1.example.org", "mutating", "validating"}
	for name, tc := range map[string]struct {
		refuses map[string]error
		pending bool // the definition is not established
		update  bool // the item was applied before
		want    []string
		waits   []string
	}{
		"webhook configurations and APIServices are applied last [F93]":                        {want: all},
		"a failed cluster-scoped object holds back new webhook configurations only [F93]":      {refuses: denied("role"), want: without(last...), waits: last},
		"a failed namespace holds back new webhook configurations only [F93]":                  {refuses: denied("shop"), want: without(last...), waits: last},
		"a failed definition holds back the objects of its kind [F93]":                         {refuses: denied("things.example.org"), want: without(append(last, "thing")...), waits: append([]string{"thing"}, last...)},
		"a definition that is not established holds back the objects of its kind [F93]":        {pending: true, want: without(append(last, "thing")...), waits: append([]string{"thing", "things.example.org"}, last...)},
		"a failed namespaced object holds back new webhook configurations [F93]":               {refuses: denied("webhook"), want: without(last...), waits: last},
		"a failed cluster-scoped object holds back no webhook configuration that exists [F93]": {refuses: denied("role"), update: true, want: all},
		"a failed webhook configuration holds back nothing [F93]":                              {refuses: denied("mutating"), update: true, want: all},
		"a failed update of a definition holds back the objects of its kind [F93]":             {refuses: denied("things.example.org"), update: true, want: without("thing"), waits: []string{"thing"}},
		"a failed new webhook configuration holds back no other webhook configuration [F93]":   {refuses: denied("mutating"), want: all},
		"two failed objects hold back what depends on either [F93]":                            {refuses: map[string]error{"role": apierrors.NewInternalError(errDenied), "things.example.org": apierrors.NewInternalError(errDenied)}, want: without(append(last, "thing")...), waits: append([]string{"thing"}, last...)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApplyServer()
			inv := Inventory{}
			if tc.update {
				inv, _, _ = s.apply(t, inv, newInstalled()...)
			}
			inv.Entries = append(inv.Entries, Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "orphan", UID: "orphan"})
			maps.Copy(s.applyErrors, tc.refuses)
			s.establishes = !tc.pending
			_, report, err := s.apply(t, inv, newInstalled()...)
			if (err == nil) != (len(tc.refuses) == 0) {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, s.written); diff != "" {
				t.Error("written:", diff)
			}
			var waits []string
			for _, w := range report.Waiting {
				waits = append(waits, w.Ref.Name)
			}
			slices.Sort(waits)
			slices.Sort(tc.waits)
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Error("waiting:", diff, report.Waiting)
			}
			if pruned := len(s.deleted)+len(s.read) > 0; pruned != (err == nil && report.IsDone()) {
				t.Error("want objects to be pruned only after a complete apply, got", s.deleted, s.read)
			}
		})
	}
}

// TestObjectsWaitForTheirAPIService checks that a new APIService does not wait for the objects that it serves, and that
// an object without its APIService waits [F93].
func TestObjectsWaitForTheirAPIService(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string) Desired {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetAPIVersion(apiVersion)
		obj.SetKind(kind)
		obj.SetNamespace(namespace)
		obj.SetName(name)
		return Desired{Object: obj}
	}
	s := newApplyServer()
	_, report, err := s.apply(t, Inventory{},
		object("apiregistration.k8s.io/v1", "APIService", "", "v1.metrics.example.org"),
		object("metrics.example.org/v1", "Flavor", "shop", "flavor"))
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"v1.metrics.example.org"}, s.written); diff != "" {
		t.Error("written:", diff)
	}
	if len(report.Waiting) != 1 || report.Waiting[0].Ref.Kind != "Flavor" {
		t.Errorf("waiting: %v, want the object whose kind is not served", report.Waiting)
	}
}

// TestAggregatedRoleIsDeletedFirst checks that an aggregated ClusterRole is deleted before the roles from which the
// controller fills it. Otherwise the controller creates it again [F97].
func TestAggregatedRoleIsDeletedFirst(t *testing.T) {
	role := func(name string, body map[string]any) Desired {
		obj := &unstructured.Unstructured{Object: body}
		obj.SetAPIVersion("rbac.authorization.k8s.io/v1")
		obj.SetKind("ClusterRole")
		obj.SetName(name)
		return Desired{Object: obj}
	}
	roles := []Desired{role("a-source", map[string]any{}), role("z-total", map[string]any{"aggregationRule": map[string]any{}, "rules": []any{}})}
	owner := ownership.Owner{UID: "item"}
	engine := func(s *applyServer) *Engine { return New(s, newInstalledMapper(), Options{Concurrency: 1}) }
	deletions := map[string]func(t *testing.T, s *applyServer, inv Inventory) bool{
		"with the item": func(t *testing.T, s *applyServer, inv Inventory) bool {
			_, report, err := engine(s).Delete(t.Context(), owner, inv, nil)
			return err == nil && len(report.Waiting) > 0
		},
		"when they leave the manifest": func(t *testing.T, s *applyServer, inv Inventory) bool {
			_, report, err := engine(s).Apply(t.Context(), owner, nil, inv)
			return err == nil && len(report.Waiting) > 0
		},
		"one by one in a session": func(t *testing.T, s *applyServer, inv Inventory) bool {
			session := engine(s).NewSession(owner, inv)
			waits, err := session.Delete(t.Context(), inv.Entries[0].Ref(), inv.Entries[1].Ref())
			return err == nil && len(waits) > 0
		},
	}
	for name, remove := range deletions {
		t.Run(name, func(t *testing.T) {
			s := newApplyServer()
			inv, _, err := s.apply(t, Inventory{}, roles...)
			if err != nil {
				t.Fatal(err)
			}
			s.objects = map[string]*unstructured.Unstructured{}
			for _, e := range inv.Entries {
				live := object.New(e.Ref())
				live.SetUID(e.UID)
				owner.Mark(live)
				s.objects[e.Name] = live
			}
			if !remove(t, s, inv) {
				t.Error("want a deletion that waits for the aggregated role")
			}
			if diff := cmp.Diff([]string{"z-total"}, s.deleted); diff != "" {
				t.Error("deleted first:", diff)
			}
		})
	}
}
