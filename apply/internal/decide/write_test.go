// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// writeCase is a desired object, what is known about it, and the responses to the requests for it.
type writeCase struct {
	strategy  string // the default is apply
	manifest  func(*Manifest)
	entry     func(*object.Entry)
	isNew     bool
	rules     func(*Rules)
	seen      *observe.State
	responses []Response
	want      []string
}

// run returns the steps for the object.
func (c writeCase) run() []string {
	strategy, changes := c.strategy, []func(*Manifest){}
	if strategy == "" {
		strategy = "apply"
	}
	if c.manifest != nil {
		changes = append(changes, c.manifest)
	}
	m := newManifest(strategy, changes...)
	f := Facts{Record: object.Record{Entry: newEntry("u", m.Hash)}, Manifest: m, Watched: c.seen}
	f.Fingerprint = "k"
	if c.entry != nil {
		c.entry(&f.Entry)
	}
	if c.isNew {
		f.IsNew, f.UID, f.Fingerprint, f.Hash = true, "", "", ""
	}
	r := newRules()
	if c.rules != nil {
		c.rules(r)
	}
	s := Write(r, f)
	steps := []string{formatStep(s)}
	for _, response := range c.responses {
		if s.Effect == "" {
			break
		}
		s = s.HandleResponse(r, response)
		steps = append(steps, formatStep(s))
	}
	return steps
}

func checkWrites(t *testing.T, cases map[string]writeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.run()); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// The objects of the tables, as the cluster returns them.
var (
	unowned           = liveMap("u", "kubectl", nil)
	ownLive           = liveMap("u", testOwner.FieldManager(), testOwner.Mark)
	foreignLive       = liveMap("u", otherOwner.FieldManager(), otherOwner.Mark)
	other             = liveMap("u", testOwner.FieldManager(), func(o *unstructured.Unstructured) { o.Object["data"] = nil })
	liveWithFinalizer = liveMap("u", testOwner.FieldManager(), addFinalizer)
	liveDeleting      = liveMap("u", testOwner.FieldManager(), func(o *unstructured.Unstructured) {
		addFinalizer(o)
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	})
)

// addFinalizer adds a finalizer to an object of the item.
func addFinalizer(o *unstructured.Unstructured) {
	testOwner.Mark(o)
	o.SetFinalizers([]string{"a/b"})
}

func TestWriteOfNewObject(t *testing.T) {
	checkWrites(t, map[string]writeCase{
		"a new object is applied": {isNew: true, responses: []Response{{Live: ownLive}}, want: []string{"apply", "end applied"}},
		"a new object with a field of another manager is read, and applied with force": {
			isNew: true, responses: []Response{{Err: newConflictError("kubectl", ".data.key")}, {Live: unowned}, {Live: ownLive}},
			want: []string{"apply", "read", "apply forced of u", "end applied"},
		},
		"a new object with a field of another manager is not created by force after its deletion": {
			isNew: true, responses: []Response{{Err: newConflictError("kubectl", ".data.key")}, {Live: unowned}, {Err: newUIDError()}},
			want: []string{"apply", "read", "apply forced of u", "end was deleted in the meantime"},
		},
		"a new object of another item is left unchanged": {
			isNew: true, responses: []Response{{Err: newConflictError("x", `.metadata.labels."`+ownership.LabelItem+`"`)}, {Live: foreignLive}},
			want: []string{"apply", "read", "end belongs to deploy item ns/other (UID other) and is left unchanged, because it is not known whether that item still exists; if it does not, remove the label deployerkit.dev/item from the object"},
		},
	})
}

func TestWriteOfSeenObject(t *testing.T) {
	checkWrites(t, map[string]writeCase{
		"an object that a watch shows unchanged needs no request": {seen: &observe.State{UID: "u", Fingerprint: "k"}, want: []string{"end unchanged"}},
		"an object that a watch shows unchanged is applied by force": {
			seen: &observe.State{UID: "u", Fingerprint: "k"}, rules: withForce, responses: []Response{{Live: ownLive}}, want: []string{"apply forced of u", "end applied"},
		},
		"an object that another writer changed is applied": {
			seen: &observe.State{UID: "u", Fingerprint: "x"}, responses: []Response{{Live: ownLive}}, want: []string{"apply forced of u", "end applied"},
		},
		"an object that another writer changed is not corrected if this is not allowed": {
			seen: &observe.State{UID: "u", Fingerprint: "x"}, rules: withAskToCorrect, responses: []Response{{Err: errNotAllowed}}, want: []string{"ask", "end postponed"},
		},
		"an object that another writer changed is corrected once this is allowed": {
			seen: &observe.State{UID: "u", Fingerprint: "x"}, rules: withAskToCorrect, responses: []Response{{}, {Live: ownLive}},
			want: []string{"ask", "apply forced of u", "end applied"},
		},
		"an object that is being deleted is waited for": {
			seen: &observe.State{UID: "u", Deleting: true}, want: []string{"end is being deleted, and is created again when it is gone"},
		},
	})
}

func TestWriteWaitsForDeletion(t *testing.T) {
	checkWrites(t, map[string]writeCase{
		"a wait for a deletion that a watch reports names the finalizers [F79]": {
			seen: &observe.State{UID: "u", Deleting: true, Finalizers: []string{"a/b", "c/d"}},
			want: []string{"end is being deleted, held by finalizers a/b, c/d, and is created again when it is gone"},
		},
		"a wait for a deletion that a write reports names the finalizers [F79]": {
			seen: &observe.State{UID: "u", Fingerprint: "x"}, responses: []Response{{Live: liveDeleting}},
			want: []string{"apply forced of u", "end is being deleted, held by finalizers a/b, and is created again when it is gone"},
		},
		"a wait for a deletion that a read reports names the finalizers [F79]": {
			strategy: "update", responses: []Response{{Live: liveDeleting}},
			want: []string{"read", "end is being deleted, held by finalizers a/b"},
		},
		"a wait for a deletion by the item names the finalizers [F79]": {
			strategy: "recreate", responses: []Response{{Live: liveWithFinalizer}, {Live: other}, {}},
			want: []string{"read", "apply forced dry of u", "delete of u", "end is being deleted, held by finalizers a/b, and is created again when it is gone"},
		},
	})
}

func TestWriteOfUnchangedObject(t *testing.T) {
	updated := []string{"read", "update", "end applied"}
	checkWrites(t, map[string]writeCase{
		"an object that the caller knows to be unchanged needs no request": {strategy: "update", manifest: withUnchanged, want: []string{"end unchanged"}},
		"an object that the caller knows to be unchanged is updated by force": {
			strategy: "update", manifest: withUnchanged, rules: withForce, responses: []Response{{Live: ownLive}, {Live: ownLive}}, want: updated,
		},
		"an unchanged object with a new manifest is updated": {
			strategy: "update", manifest: withUnchanged, entry: func(e *object.Entry) { e.Hash = "x" }, responses: []Response{{Live: ownLive}, {Live: ownLive}}, want: updated,
		},
		"an unchanged object that was not usable is updated": {
			strategy: "update", manifest: withUnchanged, entry: func(e *object.Entry) { e.Pending = true }, responses: []Response{{Live: ownLive}, {Live: ownLive}}, want: updated,
		},
		"an unchanged object that was never written is created": {
			strategy: "update", manifest: withUnchanged, isNew: true, responses: []Response{{}, {Live: ownLive}}, want: []string{"read", "create", "end applied"},
		},
		"an unchanged object that is being deleted is waited for": {
			strategy: "update", manifest: withUnchanged, seen: &observe.State{UID: "u", Deleting: true},
			want: []string{"end is being deleted, and is created again when it is gone"},
		},
		"an unchanged object with the strategy recreate needs no request": {strategy: "recreate", manifest: withUnchanged, want: []string{"end unchanged"}},
		"an unchanged object whose new manifest waits for its deletion needs no request": {
			strategy: "onDelete", manifest: withUnchanged, entry: func(e *object.Entry) { e.Hash = "x" }, want: []string{"end unchanged"},
		},
	})
}

func TestRejectedWrite(t *testing.T) {
	checkWrites(t, map[string]writeCase{
		"an object that another object has replaced is claimed": {
			responses: []Response{{Err: newUIDError()}, {Live: ownLive}}, want: []string{"apply forced of u", "apply", "end applied"},
		},
		"the change of an immutable field is an error": {
			responses: []Response{{Err: newImmutableError()}, {Live: ownLive}}, want: []string{"apply forced of u", "read", "end Forbidden: field is immutable"},
		},
		"an object whose immutable field changes is deleted if it may be recreated": {
			rules: withRecreate, responses: []Response{{Err: newImmutableError()}, {Live: ownLive}, {}},
			want: []string{"apply forced of u", "read", "delete of u", "end is replaced, because an immutable field changed"},
		},
		"a list item whose key was changed is corrected": {
			responses: []Response{{Err: newDuplicateError()}, {Live: other}, {Live: ownLive}, {Live: ownLive}},
			want:      []string{"apply forced of u", "read", "update", "apply forced of u", "end applied"},
		},
		"a list item whose key was changed is corrected later after a conflict": {
			responses: []Response{{Err: newDuplicateError()}, {Live: other}, {Err: newConflictError("kubectl", ".data.key")}},
			want:      []string{"apply forced of u", "read", "update", "end changed while it was written"},
		},
		"a list item whose key cannot be corrected is an error": {
			responses: []Response{{Err: newDuplicateError()}, {Live: other}, {Err: newImmutableError()}},
			want:      []string{"apply forced of u", "read", "update", `end Duplicate value: "x"`},
		},
		"a list item of an object of another item is not corrected": {
			responses: []Response{{Err: newDuplicateError()}, {Live: foreignLive}}, want: []string{"apply forced of u", "read", `end Duplicate value: "x"`},
		},
	})
}

func TestWriteByPolicy(t *testing.T) {
	checkWrites(t, map[string]writeCase{
		"an existing object with the policy immutable is not changed":           {manifest: withCreateOnly, responses: []Response{{Live: ownLive}}, want: []string{"read", "end unchanged"}},
		"an object without an owner with the policy immutable is not changed":   {manifest: withCreateOnly, isNew: true, responses: []Response{{Live: unowned}}, want: []string{"read", "end"}},
		"an object without an owner with the policy fallback is not changed":    {manifest: withSkipIfForeign, isNew: true, responses: []Response{{Live: unowned}}, want: []string{"read", "end"}},
		"an object with the policy fallback that does not exist is applied":     {manifest: withSkipIfForeign, isNew: true, responses: []Response{{}, {Live: ownLive}}, want: []string{"read", "apply", "end applied"}},
		"an object without an owner that must not be adopted is left unchanged": {manifest: withRejectUnowned, entry: func(e *object.Entry) { e.UID, e.Hash = "", "" }, responses: []Response{{Live: unowned}}, want: []string{"read", "end already exists, belongs to the field manager kubectl, and is not adopted"}},
	})
}

// TestWriteByStrategy has a row for each strategy and each state of an object of the inventory.
func TestWriteByStrategy(t *testing.T) {
	created := []string{"read", "create", "end applied"}
	updated := []string{"read", "update", "end applied"}
	patched := []string{"read", "patch", "end applied"}
	replaced := []string{"read", "apply forced dry of u", "delete of u", "end is being deleted, and is created again when it is gone"}
	for _, tc := range []struct {
		strategy string
		gone     []string // the object does not exist
		same     []string // the object is as the item wrote it
		changed  []string // another writer changed the object
	}{
		{"apply", []string{"apply forced of u", "apply", "end applied"}, []string{"apply forced of u", "end applied"}, []string{"apply forced of u", "end applied"}},
		{"recreate", []string{"read", "apply", "end applied"}, []string{"read", "end unchanged"}, replaced},
		{"onDelete", created, []string{"read", "end unchanged"}, []string{"read", "end unchanged"}},
		{"update", created, []string{"read", "end unchanged"}, updated},
		{"patch", created, []string{"read", "end unchanged"}, patched},
		{"merge", created, []string{"read", "end unchanged"}, []string{"read", "end unchanged"}},
		{"mergeOverwrite", created, []string{"read", "end unchanged"}, updated},
	} {
		t.Run(tc.strategy+" writes an object that does not exist", func(t *testing.T) {
			responses := []Response{{}, {Live: ownLive}, {Live: ownLive}}
			if tc.strategy == "apply" {
				responses[0].Err = newUIDError()
			}
			got := writeCase{strategy: tc.strategy, responses: responses}.run()
			if diff := cmp.Diff(tc.gone, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
		same := ownLive.DeepCopy()
		same.Object["data"] = map[string]any{"key": "1"}
		t.Run(tc.strategy+" writes an unchanged object only if it cannot know that the object is unchanged", func(t *testing.T) {
			key := func(e *object.Entry) { e.Fingerprint = ownership.ComputeFingerprint(same, testOwner.FieldManager()) }
			got := writeCase{strategy: tc.strategy, entry: key, responses: []Response{{Live: same}, {Live: same}}}.run()
			if diff := cmp.Diff(tc.same, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
		t.Run(tc.strategy+" corrects the change of another writer", func(t *testing.T) {
			responses := []Response{{Live: ownLive}, {Live: same}, {Live: same}}
			if tc.strategy == "apply" {
				responses = responses[1:]
			}
			if diff := cmp.Diff(tc.changed, writeCase{strategy: tc.strategy, responses: responses}.run()); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHashOfManifest(t *testing.T) {
	hashes := map[string][]string{}
	for _, strategy := range strategies {
		hash := newManifest(strategy.Name).Hash
		hashes[hash] = append(hashes[hash], strategy.Name)
	}
	t.Run("the strategies that use server-side apply have the same hash, so that a change between them recreates nothing", func(t *testing.T) {
		if got := hashes[newManifest("apply").Hash]; len(got) != 3 || len(hashes) != len(strategies)-2 {
			t.Errorf("strategies by hash: %v", hashes)
		}
	})
	t.Run("another patchAfterDeployment changes the hash, because the patch is sent after a write", func(t *testing.T) {
		patched := newManifest("apply", func(m *Manifest) { m.PatchAfterDeployment = map[string]any{"data": map[string]any{"done": "true"}} })
		if patched.Hash == newManifest("apply").Hash {
			t.Error("the hash does not depend on the patch")
		}
	})
}
