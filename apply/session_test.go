// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/observe"
)

// manifest returns a desired object in the namespace "shop".
func manifest(kind, name string, more map[string]any) Desired {
	body := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}}
	return Desired{Object: &unstructured.Unstructured{Object: jsondiff.MergeOverlay(body, more)}}
}

func TestSessionSendsNothingForUnchangedObjects(t *testing.T) {
	desired, inv := newDeployed(t, 40)
	checkpoint := func(context.Context, Inventory) error { t.Error("an inventory was stored"); return nil }
	s := New(nil, newConfigMapMapper(), Options{Watched: unchangedLookup{}, Checkpoint: checkpoint}).NewSession(ownership.Owner{UID: "item"}, inv)
	var all sync.WaitGroup
	for _, d := range desired {
		all.Go(func() {
			out, err := s.Apply(t.Context(), d)
			if err != nil || len(out) != 1 || out[0].Live != nil || out[0].Changed || out[0].WaitMessage != "" {
				t.Error(out, err)
			}
			s.Inventory()
			s.Report()
			s.ListUnclaimed()
		})
	}
	all.Wait()
	if diff := cmp.Diff(inv, s.Inventory()); diff != "" {
		t.Error(diff)
	}
	if report := s.Report(); report.Unchanged != 40 || len(report.Owned) != 40 || len(s.ListUnclaimed()) != 0 {
		t.Error(report, s.ListUnclaimed())
	}
}

// TestClaimsAreStoredOneAfterTheOther checks that two concurrent claims are stored one after the other, so that the
// inventory that is stored last contains both objects.
func TestClaimsAreStoredOneAfterTheOther(t *testing.T) {
	calls, second := make(chan int, 2), make(chan struct{})
	n := atomic.Int64{}
	checkpoint := func(_ context.Context, inv Inventory) error {
		if n.Add(1) == 2 {
			close(second)
		}
		select {
		case <-second:
		case <-time.After(100 * time.Millisecond): // the other claim has to wait
		}
		calls <- len(inv.Entries)
		return nil
	}
	s := New(nil, newConfigMapMapper(), Options{Checkpoint: checkpoint}).NewSession(ownership.Owner{UID: "item"}, Inventory{})
	var both sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		both.Go(func() {
			if err := s.Claim(t.Context(), manifest("ConfigMap", name, nil)); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if first, last := <-calls, <-calls; first != 1 || last != 2 {
		t.Errorf("stored %d objects, then %d", first, last)
	}
}

// TestSessionReportListsAllOwned checks that Report.Owned also describes the objects that the Session did not apply. A
// watch must detect changes of these objects, too.
func TestSessionReportListsAllOwned(t *testing.T) {
	desired, inv := newDeployed(t, 3)
	s := New(nil, newConfigMapMapper(), Options{Watched: unchangedLookup{}}).NewSession(ownership.Owner{UID: "item"}, inv)
	if _, err := s.Apply(t.Context(), desired[1]); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	var want []observe.BaselineObject
	for _, e := range inv.Entries {
		want = append(want, observe.BaselineObject{Object: observe.Object{Resource: resource, NamespacedName: e.Ref().Key()}, UID: e.UID, Fingerprint: e.Fingerprint})
	}
	if diff := cmp.Diff(want, s.Report().Owned); diff != "" {
		t.Error(diff)
	}
}

func TestSessionRejectsInvalidObjects(t *testing.T) {
	good := manifest("ConfigMap", "good", nil)
	of := func(component string) Desired {
		d := good
		d.Component = component
		return d
	}
	for name, tc := range map[string]struct {
		desired []Desired
		want    string
	}{
		"empty":     {[]Desired{{}}, "a manifest is empty"},
		"list":      {[]Desired{manifest("List", "l", map[string]any{"items": []any{good.Object.Object}})}, "List shop/l: is a list; pass its items individually"},
		"no items":  {[]Desired{manifest("List", "l", map[string]any{"items": []any{}})}, "List shop/l: is a list"},
		"twice":     {[]Desired{good, good}, "ConfigMap shop/good: is listed more than once"},
		"component": {[]Desired{of("b")}, `ConfigMap shop/good: is returned by two components, "a" and "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			stored := 0
			checkpoint := func(context.Context, Inventory) error { stored++; return nil }
			s := New(nil, newConfigMapMapper(), Options{Checkpoint: checkpoint}).NewSession(ownership.Owner{UID: "item"}, Inventory{})
			if err := s.Claim(t.Context(), of("a")); err != nil {
				t.Fatal(err)
			}
			out, err := s.Apply(t.Context(), append(tc.desired, manifest("ConfigMap", "other", nil))...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || GetClass(err) != ClassPermanent || out != nil {
				t.Error(out, err)
			}
			if len(s.Inventory().Entries) != 1 || stored != 1 {
				t.Error("something was claimed", s.Inventory(), stored)
			}
		})
	}
}

// createClient is a client that applies every object.
type createClient struct{ client.Client }

func (createClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}

func TestUnservedKind(t *testing.T) {
	thing, good := manifest("Thing", "x", nil), manifest("ConfigMap", "good", nil)
	const reason = "the cluster does not know /v1, Kind=Thing yet"
	t.Run("waits without an entry in the inventory, while the other objects are applied [F71]", func(t *testing.T) {
		inv, report, err := New(createClient{}, newConfigMapMapper(), Options{}).Apply(t.Context(), ownership.Owner{UID: "item"}, []Desired{thing, good}, Inventory{})
		if err != nil || report.Applied != 1 || len(inv.Entries) != 1 || inv.Entries[0].Name != "good" {
			t.Errorf("got the report %+v, the inventory %+v and the error %v", report, inv, err)
		}
		if len(report.Waiting) != 1 || report.Waiting[0].Message != reason {
			t.Errorf("got the waiting objects %v, want the reason %q", report.Waiting, reason)
		}
	})
	t.Run("keeps the entry of an object that was applied before [F70]", func(t *testing.T) {
		before := Inventory{Entries: []Entry{{APIVersion: "v1", Kind: "Thing", Namespace: "shop", Name: "x", UID: "u", Hash: "h", Fingerprint: "k"}}}
		inv, report, err := New(unservingClient{}, newConfigMapMapper(), Options{}).Apply(t.Context(), ownership.Owner{UID: "item"}, []Desired{thing}, before)
		if err != nil || len(inv.Entries) != 1 || inv.Entries[0].UID != "u" {
			t.Errorf("got the inventory %+v and the error %v", inv, err)
		}
		if len(report.Waiting) != 1 || report.Waiting[0].Message != reason {
			t.Errorf("got the waiting objects %v, want the reason %q", report.Waiting, reason)
		}
	})
	t.Run("an object is claimed by its component although it is not served [F70]", func(t *testing.T) {
		before := Inventory{Entries: []Entry{{APIVersion: "v1", Kind: "Thing", Namespace: "shop", Name: "x", UID: "u", Hash: "h", Fingerprint: "k"}}}
		s := New(unservingClient{}, newConfigMapMapper(), Options{}).NewSession(ownership.Owner{UID: "item"}, before)
		if err := s.Claim(t.Context(), thing); err != nil || len(s.ListUnclaimed()) != 0 {
			t.Errorf("got the unclaimed objects %v and the error %v, want none", s.ListUnclaimed(), err)
		}
	})
	t.Run("a kind is known as soon as it is served in a session [F71]", func(t *testing.T) {
		mapper := meta.NewDefaultRESTMapper(nil)
		s := New(createClient{}, mapper, Options{}).NewSession(ownership.Owner{UID: "item"}, Inventory{})
		if err := s.Claim(t.Context(), thing); err != nil {
			t.Fatal(err)
		}
		out, err := s.Apply(t.Context(), thing)
		if err != nil || len(out) != 1 || out[0].WaitMessage != reason {
			t.Errorf("got the outcomes %+v and the error %v, want the reason %q", out, err, reason)
		}
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Thing"}, meta.RESTScopeNamespace)
		out, err = s.Apply(t.Context(), thing)
		if err != nil || out[0].WaitMessage != "" || len(s.Inventory().Entries) != 1 {
			t.Errorf("got the outcomes %+v and the error %v, want the object to be applied", out, err)
		}
	})
}

// unservingClient is a client of a cluster that does not serve the kind Thing.
type unservingClient struct{ client.Client }

func (unservingClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Thing"}, SearchedVersions: []string{"v1"}}
}

func TestSessionHidesSecretsOfEarlierCalls(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "ConfigMap"} {
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	secret := manifest("Secret", "s", map[string]any{"data": map[string]any{"k": base64.StdEncoding.EncodeToString([]byte("CANARY-1"))}})
	s := New(nil, mapper, Options{Hide: []string{"CANARY-2"}}).NewSession(ownership.Owner{UID: "item"}, Inventory{})
	if err := s.Claim(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	wrong := manifest("ConfigMap", "c", nil)
	wrong.Policy = "CANARY-1-CANARY-2"
	err := s.Claim(t.Context(), wrong)
	if err == nil || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "***-***") {
		t.Error(err)
	}
}

func TestSetWanted(t *testing.T) {
	known := Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "u", Fingerprint: "k", Hash: "h"}
	with := func(change func(*Entry)) *Entry {
		e := known
		change(&e)
		return &e
	}
	for name, tc := range map[string]struct {
		before *Entry
		d      Desired
		want   *Entry // nil if the inventory does not contain the object
	}{
		"new":               {nil, Desired{Policy: PolicyManage}, &Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}},
		"known":             {&known, Desired{Policy: PolicyManage}, &known},
		"component":         {&known, Desired{Policy: PolicyManage, Component: "c", Requires: []string{"d"}}, with(func(e *Entry) { e.Component, e.Requires = "c", []string{"d"} })},
		"policy":            {&known, Desired{Policy: PolicyKeep}, with(func(e *Entry) { e.Policy = PolicyKeep })},
		"on delete":         {&known, Desired{Policy: PolicyManage, Strategy: StrategyOnDelete}, with(func(e *Entry) { e.OnDelete = true })},
		"immutable anyway":  {&known, Desired{Policy: PolicyImmutable, Strategy: StrategyOnDelete}, with(func(e *Entry) { e.Policy = PolicyImmutable })},
		"retained":          {with(func(e *Entry) { e.OnDelete, e.Policy = true, PolicyFallback }), Desired{Policy: PolicyRetain, Component: "c"}, with(func(e *Entry) { e.Fingerprint, e.Policy, e.Component = "", PolicyFallback, "c" })},
		"retained, unknown": {nil, Desired{Policy: PolicyRetain}, nil},
		"ignored":           {&known, Desired{Policy: PolicyIgnore}, nil},
		"ignored, unknown":  {nil, Desired{Policy: PolicyIgnore}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := object.Record{Gone: true}
			if tc.before != nil {
				s = object.Record{Entry: *tc.before}
			}
			setDesired(&s, &desiredObject{Desired: tc.d, ref: known.Ref()})
			if s.Gone != (tc.want == nil) {
				t.Fatalf("gone: %v", s.Gone)
			}
			if tc.want == nil {
				return
			}
			if diff := cmp.Diff(*tc.want, s.Entry, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// countingMapper counts the lookups of kinds. Preparing an object looks up its kind once, so the result is the number
// of prepared objects.
type countingMapper struct {
	meta.RESTMapper
	asked int
}

func (m *countingMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.asked++
	return m.RESTMapper.RESTMapping(gk, versions...)
}

// TestSessionPreparesOnce checks that a Session prepares a claimed object only once, unless the Desired changes or the
// object is applied in the meantime.
func TestSessionPreparesOnce(t *testing.T) {
	desired, inv := newDeployed(t, 2)
	mapper := &countingMapper{RESTMapper: newConfigMapMapper()}
	s := New(nil, mapper, Options{Watched: unchangedLookup{}}).NewSession(ownership.Owner{UID: "item"}, inv)
	a, b := desired[0], desired[1]
	other := a
	other.Policy = PolicyFallback
	for i, step := range []struct {
		name     string
		do       func() error
		prepares int
	}{
		{"the first claim", func() error { return s.Claim(t.Context(), a) }, 1},
		{"the second claim", func() error { return s.Claim(t.Context(), a) }, 0},
		{"an apply with another object", func() error { _, err := s.Apply(t.Context(), b, a); return err }, 2},
		{"a claim after that apply", func() error { return s.Claim(t.Context(), a) }, 1},
		{"an apply of the claimed object", func() error { _, err := s.Apply(t.Context(), a); return err }, 0},
		{"a second apply", func() error { _, err := s.Apply(t.Context(), a); return err }, 1},
		{"a claim after the apply", func() error { return s.Claim(t.Context(), a) }, 1},
		{"another policy", func() error { _, err := s.Apply(t.Context(), other); return err }, 1},
		{"a copy", func() error {
			return s.Claim(t.Context(), Desired{Object: a.Object.DeepCopy()})
		}, 1},
	} {
		before := mapper.asked
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		if got := mapper.asked - before; got != step.prepares {
			t.Errorf("step %d, %s: %d objects were prepared, want %d", i, step.name, got, step.prepares)
		}
	}
	if report := s.Report(); report.Unchanged != 5 {
		t.Error(report)
	}
	if err := s.Claim(t.Context(), a); err != nil {
		t.Error(err)
	}
	if _, err := s.Apply(t.Context(), a, a); err == nil || !strings.Contains(err.Error(), "is listed more than once") {
		t.Errorf("the same object twice: %v", err)
	}
}

// BenchmarkSession measures a Session that applies unchanged objects one after the other.
func BenchmarkSession(b *testing.B) {
	for _, n := range []int{50, 1000} {
		b.Run(fmt.Sprintf("unchanged-%d", n), func(b *testing.B) {
			desired, inv := newDeployed(b, n)
			engine := New(nil, newConfigMapMapper(), Options{Watched: unchangedLookup{}})
			for b.Loop() {
				s := engine.NewSession(ownership.Owner{UID: "item"}, inv)
				for _, d := range desired {
					if _, err := s.Apply(b.Context(), d); err != nil {
						b.Fatal(err)
					}
				}
				if report := s.Report(); report.Unchanged != n {
					b.Fatal(report)
				}
			}
		})
	}
}

// TestClaimFailsIfItIsNotStored checks that a claim has no effect if the inventory cannot be stored, and that the next
// claim tries again to store it.
func TestClaimFailsIfItIsNotStored(t *testing.T) {
	failing, calls := errors.New("no room"), 0
	checkpoint := func(context.Context, Inventory) error { calls++; return failing }
	s := New(nil, newConfigMapMapper(), Options{Checkpoint: checkpoint}).NewSession(ownership.Owner{UID: "item"}, Inventory{})
	for range 2 {
		if err := s.Claim(t.Context(), manifest("ConfigMap", "a", nil)); !errors.Is(err, failing) {
			t.Error(err)
		}
	}
	if got := s.Inventory(); calls != 2 || len(got.Entries) != 0 {
		t.Errorf("stored %d times, %v", calls, got)
	}
}

// TestWaitsEnd checks that the report lists an object as waiting until the object is finished.
func TestWaitsEnd(t *testing.T) {
	r := New(nil, newConfigMapMapper(), Options{}).begin(ownership.Owner{}, Inventory{})
	one, other := Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}, Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "b"}
	r.results.recordError(one, newWaitingError(one, "is being deleted"))
	r.results.recordError(other, newWaitingError(other, "is being deleted"))
	r.results.recordError(one, nil)
	_, report, err := r.result(t.Context())
	if diff := cmp.Diff([]Waiting{{Ref: other, Message: "is being deleted"}}, report.Waiting); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestStoppedObjectsAreReported checks that the error of a stopped call wraps the cause of the stop, even if there are
// other errors.
func TestStoppedObjectsAreReported(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	over := errors.New("the leader changed")
	stop(over)
	r := New(nil, newConfigMapMapper(), Options{}).begin(ownership.Owner{}, Inventory{})
	r.results.recordError(Ref{}, newInvalidError(Ref{}, "", "wrong"))
	_, _, err := r.result(ctx)
	if !errors.Is(err, over) || GetClass(err) != ClassPermanent {
		t.Error(err)
	}
}
