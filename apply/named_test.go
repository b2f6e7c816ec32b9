// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// server is an API server with one object. A test can set the function in the field `stores` to change each object
// before the server stores it.
type server struct {
	client.Client
	t      *testing.T
	writes int
	reads  int
	stores func(obj *unstructured.Unstructured)
}

func newServer(t *testing.T) *server {
	s := &server{t: t, stores: func(*unstructured.Unstructured) {}}
	write := func(obj client.Object) {
		s.writes++
		s.stores(obj.(*unstructured.Unstructured))
	}
	s.Client = interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(configMaps()).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			s.reads++
			return c.Get(ctx, key, obj, o...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			obj.SetUID("u")
			write(obj)
			return c.Create(ctx, obj, o...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			write(obj)
			return c.Update(ctx, obj, o...)
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			s.writes++
			return errors.New("refused")
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			if err := c.Patch(ctx, obj, p, o...); err != nil {
				return err
			}
			write(obj)
			return c.Update(ctx, obj)
		},
	})
	return s
}

// edit changes the data of the object on behalf of another writer.
func (s *server) edit(key, value string) {
	s.t.Helper()
	obj := manifest("ConfigMap", "a", nil).Object
	writes, reads := s.writes, s.reads
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		s.t.Fatal(err)
	}
	if err := unstructured.SetNestedField(obj.Object, value, "data", key); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Update(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
	s.writes, s.reads = writes, reads
}

func (s *server) wants(data map[string]any) {
	s.t.Helper()
	obj := manifest("ConfigMap", "a", nil).Object
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		s.t.Fatal(err)
	}
	s.reads--
	if diff := cmp.Diff(data, obj.Object["data"]); diff != "" {
		s.t.Error(diff)
	}
}

// applied applies a ConfigMap and checks the number of requests.
func (s *server) applied(o Options, inv Inventory, data map[string]any, reads, writes int) Inventory {
	s.t.Helper()
	s.reads, s.writes = 0, 0
	inv, _, err := New(s, configMaps(), o).Apply(s.t.Context(), ownership.Owner{UID: "item"}, []Desired{manifest("ConfigMap", "a", map[string]any{"data": data})}, inv)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.reads != reads || s.writes != writes {
		s.t.Errorf("want %d reads and %d writes, got %d and %d", reads, writes, s.reads, s.writes)
	}
	return inv
}

func TestDesiredFieldsDecide(t *testing.T) {
	type data = map[string]any
	for _, strategy := range []Strategy{Update, Patch, Merge, MergeOverwrite} {
		merges := strategy == Merge || strategy == MergeOverwrite
		o := Options{Strategy: strategy}
		t.Run(string(strategy)+" leaves what others add until the manifest changes [F24, F61]", func(t *testing.T) {
			s := newServer(t)
			inv := s.applied(o, Inventory{}, data{"key": "1", "old": ""}, 1, 1)
			s.edit("theirs", "x")
			inv = s.applied(o, inv, data{"key": "1", "old": ""}, 1, 0)
			s.wants(data{"key": "1", "old": "", "theirs": "x"})
			inv = s.applied(o, inv, data{"key": "1", "more": "x"}, 1, 1)
			if merges {
				s.wants(data{"key": "1", "old": "", "more": "x", "theirs": "x"})
			} else {
				s.wants(data{"key": "1", "more": "x"})
			}
			s.edit("theirs", "y")
			s.applied(o, inv, data{"key": "1", "more": "x"}, 1, 0)
		})
		t.Run(string(strategy)+" leaves what it may not put right now [F24]", func(t *testing.T) {
			s := newServer(t)
			inv := s.applied(o, Inventory{}, data{"key": "1"}, 1, 1)
			s.edit("key", "")
			var asked []Drift
			may := false
			o := o
			o.MayHeal = func(d Drift) bool { asked = append(asked, d); return may }
			inv = s.applied(o, inv, data{"key": "1"}, 1, 0)
			s.wants(data{"key": ""})
			if len(asked) != 1 || asked[0].Ref.Name != "a" || asked[0].UID != "u" || !slices.Equal(asked[0].Fields, []string{".data.key"}) {
				t.Errorf("asked %v", asked)
			}
			may = true
			inv = s.applied(o, inv, data{"key": "1"}, 1, 1)
			may, asked = false, nil
			inv = s.applied(o, inv, data{"key": "2", "more": "x"}, 1, 1)
			s.edit("key", "")
			o.Force = true
			s.applied(o, inv, data{"key": "2", "more": "x"}, 1, 1)
			if len(asked) != 0 {
				t.Errorf("asked about another manifest, or in a thorough run: %v", asked)
			}
		})
		t.Run(string(strategy)+" puts right what the manifest names [F24]", func(t *testing.T) {
			s := newServer(t)
			inv := s.applied(o, Inventory{}, data{"key": "1"}, 1, 1)
			s.edit("theirs", "x")
			s.edit("key", "2")
			if strategy == Merge {
				s.applied(o, inv, data{"key": "1"}, 1, 0)
				return
			}
			s.applied(o, inv, data{"key": "1"}, 1, 1)
			s.wants(data{"key": "1", "theirs": "x"})
		})
		t.Run(string(strategy)+" accepts what the API server makes of it [F61]", func(t *testing.T) {
			s := newServer(t)
			s.stores = func(obj *unstructured.Unstructured) {
				stored, _, _ := unstructured.NestedStringMap(obj.Object, "data")
				if stored["cpu"] == "1000m" {
					stored["cpu"] = "1"
				}
				delete(stored, "zero")
				_ = unstructured.SetNestedStringMap(obj.Object, stored, "data")
			}
			want := data{"key": "1", "cpu": "1000m", "zero": ""}
			inv := s.applied(o, Inventory{}, want, 1, 1)
			s.edit("theirs", "x")
			inv = s.applied(o, inv, want, 1, 0)
			s.edit("cpu", "2")
			if strategy != Merge {
				inv = s.applied(o, inv, want, 1, 1)
				s.applied(o, inv, want, 1, 0)
			}
		})
	}
}

// sees is a Lookup that shows one object.
type sees observe.State

func (s sees) Get(schema.GroupVersionResource, types.NamespacedName) (observe.State, bool) {
	return observe.State(s), s.UID != ""
}

func TestAppliedOnce(t *testing.T) {
	type data = map[string]any
	for _, strategy := range []Strategy{Update, Patch, Merge, MergeOverwrite} {
		t.Run(string(strategy)+" writes an unchanged manifest once in a run [F61]", func(t *testing.T) {
			s := newServer(t)
			o := Options{Strategy: strategy, Applied: &Applied{}, Force: true}
			inv := s.applied(o, Inventory{}, data{"key": "1"}, 1, 1)
			s.edit("key", "theirs")
			inv = s.applied(o, inv, data{"key": "1"}, 1, 0)
			o.Seen = sees{UID: "u"}
			inv = s.applied(o, inv, data{"key": "1"}, 0, 0)
			inv = s.applied(o, inv, data{"more": "2"}, 1, 1)
			o.Seen = sees{UID: "another"}
			if err := s.Delete(t.Context(), manifest("ConfigMap", "a", nil).Object); err != nil {
				t.Fatal(err)
			}
			s.applied(o, inv, data{"more": "2"}, 1, 1)
		})
	}
	t.Run("the next run begins anew [F61]", func(t *testing.T) {
		s := newServer(t)
		inv := s.applied(Options{Strategy: Update, Applied: &Applied{}}, Inventory{}, data{"key": "1"}, 1, 1)
		s.edit("key", "theirs")
		s.applied(Options{Strategy: Update, Applied: &Applied{}}, inv, data{"key": "1"}, 1, 1)
	})
	t.Run("apply puts right what a watch shows, and nothing else [F61]", func(t *testing.T) {
		desired, inv := deployed(t, 1)
		entry := inv.Entries[0]
		s, o := newServer(t), Options{Applied: &Applied{}, Force: true, Seen: unchanged{}}
		o.Applied.add(toID(entry.Ref()), state{entry.UID, entry.Hash})
		apply := func() error {
			_, _, err := New(s, configMaps(), o).Apply(t.Context(), ownership.Owner{UID: "item"}, desired, inv)
			return err
		}
		if err := apply(); err != nil || s.reads+s.writes > 0 {
			t.Error(err, s.reads, s.writes)
		}
		o.Seen = sees{UID: entry.UID, Key: "other"}
		if err := apply(); err == nil || s.writes != 1 {
			t.Error(err, s.writes)
		}
	})
}
