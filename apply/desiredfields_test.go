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

// fakeServer is an API server with one object. A test can set the function in the field `onStore` to change each object
// before the server stores it.
type fakeServer struct {
	client.Client
	t       *testing.T
	writes  int
	reads   int
	onStore func(obj *unstructured.Unstructured)
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{t: t, onStore: func(*unstructured.Unstructured) {}}
	write := func(obj client.Object) {
		s.writes++
		s.onStore(obj.(*unstructured.Unstructured))
	}
	s.Client = interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(newConfigMapMapper()).Build(), interceptor.Funcs{
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

// editData changes the data of the object on behalf of another writer.
func (s *fakeServer) editData(key, value string) {
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

func (s *fakeServer) expectData(data map[string]any) {
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

// expectApply applies a ConfigMap and checks the number of requests.
func (s *fakeServer) expectApply(o Options, inv Inventory, data map[string]any, reads, writes int) Inventory {
	s.t.Helper()
	s.reads, s.writes = 0, 0
	inv, _, err := New(s, newConfigMapMapper(), o).Apply(s.t.Context(), ownership.Owner{UID: "item"}, []Desired{manifest("ConfigMap", "a", map[string]any{"data": data})}, inv)
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
	for _, strategy := range []Strategy{StrategyUpdate, StrategyPatch, StrategyMerge, StrategyMergeOverwrite} {
		merges := strategy == StrategyMerge || strategy == StrategyMergeOverwrite
		o := Options{Strategy: strategy}
		t.Run(string(strategy)+" leaves what others add until the manifest changes [F24, F61]", func(t *testing.T) {
			s := newFakeServer(t)
			inv := s.expectApply(o, Inventory{}, data{"key": "1", "old": ""}, 1, 1)
			s.editData("theirs", "x")
			inv = s.expectApply(o, inv, data{"key": "1", "old": ""}, 1, 0)
			s.expectData(data{"key": "1", "old": "", "theirs": "x"})
			inv = s.expectApply(o, inv, data{"key": "1", "more": "x"}, 1, 1)
			if merges {
				s.expectData(data{"key": "1", "old": "", "more": "x", "theirs": "x"})
			} else {
				s.expectData(data{"key": "1", "more": "x"})
			}
			s.editData("theirs", "y")
			s.expectApply(o, inv, data{"key": "1", "more": "x"}, 1, 0)
		})
		t.Run(string(strategy)+" leaves what it may not put right now [F24]", func(t *testing.T) {
			s := newFakeServer(t)
			inv := s.expectApply(o, Inventory{}, data{"key": "1"}, 1, 1)
			s.editData("key", "")
			var asked []DriftedObject
			may := false
			o := o
			o.CanCorrect = func(d DriftedObject) bool { asked = append(asked, d); return may }
			inv = s.expectApply(o, inv, data{"key": "1"}, 1, 0)
			s.expectData(data{"key": ""})
			if len(asked) != 1 || asked[0].Ref.Name != "a" || asked[0].UID != "u" || !slices.Equal(asked[0].Fields, []string{".data.key"}) {
				t.Errorf("asked %v", asked)
			}
			may = true
			inv = s.expectApply(o, inv, data{"key": "1"}, 1, 1)
			may, asked = false, nil
			inv = s.expectApply(o, inv, data{"key": "2", "more": "x"}, 1, 1)
			s.editData("key", "")
			o.Force = true
			s.expectApply(o, inv, data{"key": "2", "more": "x"}, 1, 1)
			if len(asked) != 0 {
				t.Errorf("asked about another manifest, or in a thorough run: %v", asked)
			}
		})
		t.Run(string(strategy)+" puts right what the manifest names [F24]", func(t *testing.T) {
			s := newFakeServer(t)
			inv := s.expectApply(o, Inventory{}, data{"key": "1"}, 1, 1)
			s.editData("theirs", "x")
			s.editData("key", "2")
			if strategy == StrategyMerge {
				s.expectApply(o, inv, data{"key": "1"}, 1, 0)
				return
			}
			s.expectApply(o, inv, data{"key": "1"}, 1, 1)
			s.expectData(data{"key": "1", "theirs": "x"})
		})
		t.Run(string(strategy)+" accepts what the API server makes of it [F61]", func(t *testing.T) {
			s := newFakeServer(t)
			s.onStore = func(obj *unstructured.Unstructured) {
				stored, _, _ := unstructured.NestedStringMap(obj.Object, "data")
				if stored["cpu"] == "1000m" {
					stored["cpu"] = "1"
				}
				delete(stored, "zero")
				_ = unstructured.SetNestedStringMap(obj.Object, stored, "data")
			}
			want := data{"key": "1", "cpu": "1000m", "zero": ""}
			inv := s.expectApply(o, Inventory{}, want, 1, 1)
			s.editData("theirs", "x")
			inv = s.expectApply(o, inv, want, 1, 0)
			s.editData("cpu", "2")
			if strategy != StrategyMerge {
				inv = s.expectApply(o, inv, want, 1, 1)
				s.expectApply(o, inv, want, 1, 0)
			}
		})
	}
}

// seenLookup is a Lookup that shows one object.
type seenLookup observe.State

func (s seenLookup) Get(schema.GroupVersionResource, types.NamespacedName) (observe.State, bool) {
	return observe.State(s), s.UID != ""
}

func TestObjectsAreAppliedOncePerRun(t *testing.T) {
	type data = map[string]any
	for _, strategy := range []Strategy{StrategyUpdate, StrategyPatch, StrategyMerge, StrategyMergeOverwrite} {
		t.Run(string(strategy)+" writes an unchanged manifest once in a run [F61]", func(t *testing.T) {
			s := newFakeServer(t)
			o := Options{Strategy: strategy, Applied: &Applied{}, Force: true}
			inv := s.expectApply(o, Inventory{}, data{"key": "1"}, 1, 1)
			s.editData("key", "theirs")
			inv = s.expectApply(o, inv, data{"key": "1"}, 1, 0)
			o.Watched = seenLookup{UID: "u"}
			inv = s.expectApply(o, inv, data{"key": "1"}, 0, 0)
			inv = s.expectApply(o, inv, data{"more": "2"}, 1, 1)
			o.Watched = seenLookup{UID: "another"}
			if err := s.Delete(t.Context(), manifest("ConfigMap", "a", nil).Object); err != nil {
				t.Fatal(err)
			}
			s.expectApply(o, inv, data{"more": "2"}, 1, 1)
		})
	}
	t.Run("the next run corrects changes by other clients [F61]", func(t *testing.T) {
		s := newFakeServer(t)
		inv := s.expectApply(Options{Strategy: StrategyUpdate, Applied: &Applied{}}, Inventory{}, data{"key": "1"}, 1, 1)
		s.editData("key", "theirs")
		s.expectApply(Options{Strategy: StrategyUpdate, Applied: &Applied{}}, inv, data{"key": "1"}, 1, 1)
	})
	t.Run("apply puts right what a watch shows, and nothing else [F61]", func(t *testing.T) {
		desired, inv := newDeployed(t, 1)
		entry := inv.Entries[0]
		s, o := newFakeServer(t), Options{Applied: &Applied{}, Force: true, Watched: unchangedLookup{}}
		o.Applied.add(toID(entry.Ref()), state{entry.UID, entry.Hash})
		apply := func() error {
			_, _, err := New(s, newConfigMapMapper(), o).Apply(t.Context(), ownership.Owner{UID: "item"}, desired, inv)
			return err
		}
		if err := apply(); err != nil || s.reads+s.writes > 0 {
			t.Error(err, s.reads, s.writes)
		}
		o.Watched = seenLookup{UID: entry.UID, Fingerprint: "other"}
		if err := apply(); err == nil || s.writes != 1 {
			t.Error(err, s.writes)
		}
	})
}
