// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

var (
	me      = ownership.Owner{UID: "item", Landscape: "l", Namespace: "ns", Name: "n"}
	someone = ownership.Owner{UID: "other", Landscape: "l", Namespace: "ns", Name: "other"}
)

// desiredMap returns a ConfigMap that is ready to be sent.
func desiredMap(policy Policy, strategy Strategy) *object {
	d := manifest("ConfigMap", "a", map[string]any{"data": map[string]any{"key": "1"}})
	d.Policy, d.Strategy = policy, strategy
	me.Stamp(d.Object)
	o := &object{Desired: d, ref: RefOf(d.Object), kind: kind{namespaced: true}}
	o.hash = hash(o)
	return o
}

// liveMap returns the ConfigMap as the cluster returns it after the given field manager has written it.
func liveMap(uid types.UID, manager string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	live := manifest("ConfigMap", "a", map[string]any{"data": map[string]any{"key": "2"}}).Object
	live.SetUID(uid)
	live.SetResourceVersion("1")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", Time: &metav1.Time{},
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}}}`),
	}})
	if change != nil {
		change(live)
	}
	return live
}

var configMap = schema.GroupResource{Resource: "configmaps"}

func conflictWithManager(manager, path string) error {
	return apierrors.NewApplyConflict([]metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Message: fmt.Sprintf("conflict with %q", manager), Field: path,
	}}, "conflict")
}

func immutableChange() error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable")})
}

func duplicateName() error {
	path := field.NewPath("items").Index(1).Child("name")
	return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{field.Duplicate(path, "x")})
}

func otherUID() error {
	err := apierrors.NewConflict(configMap, "a", fmt.Errorf("uid mismatch: the provided object specified uid x, and no existing object was found"))
	err.ErrStatus.Code = http.StatusConflict
	return err
}

// summary describes a step in one line, for comparison with the tables.
func summary(s step) string {
	parts := []string{string(s.effect)}
	if s.effect == "" {
		parts = append(parts[:0], "end", string(s.count))
		if s.err != nil {
			parts = append(parts, classify(s.known.Ref(), s.err, nil).Reason)
		}
	}
	if s.force {
		parts = append(parts, "forced")
	}
	if s.dry {
		parts = append(parts, "dry")
	}
	if s.uid != "" {
		parts = append(parts, "of "+string(s.uid))
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

func TestDecide(t *testing.T) {
	written := func(o *object) Entry {
		return Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "u", Key: "k", Hash: o.hash}
	}
	unowned := liveMap("u", "kubectl", nil)
	ours := liveMap("u", me.Manager(), me.Stamp)
	theirs := liveMap("u", someone.Manager(), someone.Stamp)
	other := liveMap("u", me.Manager(), func(o *unstructured.Unstructured) { o.Object["data"] = nil })
	hold := func(o *unstructured.Unstructured) { me.Stamp(o); o.SetFinalizers([]string{"a/b"}) }
	held := liveMap("u", me.Manager(), hold)
	going := liveMap("u", me.Manager(), func(o *unstructured.Unstructured) {
		hold(o)
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	})
	type result struct {
		live *unstructured.Unstructured
		err  error
	}
	for name, tc := range map[string]struct {
		policy   Policy
		strategy Strategy
		entry    func(*Entry)
		isNew    bool
		same     bool // Desired.Unchanged
		options  Options
		seen     *observe.State
		results  []result
		want     []string
	}{
		"a new object is applied": {isNew: true, results: []result{{ours, nil}}, want: []string{"apply", "end applied"}},
		"a new object with a field of another manager is applied again": {isNew: true, results: []result{{nil, conflictWithManager("kubectl", ".data.key")}, {ours, nil}}, want: []string{"apply", "apply forced", "end applied"}},
		"a new object that another item owns is an error": {
			isNew: true, results: []result{{nil, conflictWithManager("x", `.metadata.labels."`+ownership.LabelItem+`"`)}, {theirs, nil}},
			want: []string{"apply", "read", "end belongs to deploy item ns/other (UID other) and is left unchanged, because it is not known whether that item still exists; if it does not, remove the label deployerkit.dev/item from the object"},
		},
		"an object that a watch shows unchanged needs no request":           {seen: &observe.State{UID: "u", Key: "k"}, want: []string{"end unchanged"}},
		"an object that a watch shows unchanged is applied in a forced run": {seen: &observe.State{UID: "u", Key: "k"}, options: Options{Force: true}, results: []result{{ours, nil}}, want: []string{"apply forced of u", "end applied"}},
		"an object that a watch shows changed is applied":                   {seen: &observe.State{UID: "u", Key: "x"}, results: []result{{ours, nil}}, want: []string{"apply forced of u", "end applied"}},
		"an object that a watch shows changed is not corrected yet":         {seen: &observe.State{UID: "u", Key: "x"}, options: Options{MayHeal: func(Drift) bool { return false }}, results: []result{{nil, errDenied}}, want: []string{"ask", "end postponed"}},
		"an object that a watch shows in deletion is waited for":            {seen: &observe.State{UID: "u", Deleting: true}, want: []string{"end is being deleted, and is created again when it is gone"}},
		"a wait for a deletion that a watch reports names the finalizers [F79]": {
			seen: &observe.State{UID: "u", Deleting: true, Finalizers: []string{"a/b", "c/d"}},
			want: []string{"end is being deleted, held by finalizers a/b, c/d, and is created again when it is gone"},
		},
		"a wait for a deletion that a write reports names the finalizers [F79]": {
			seen: &observe.State{UID: "u", Key: "x"}, results: []result{{going, nil}},
			want: []string{"apply forced of u", "end is being deleted, held by finalizers a/b, and is created again when it is gone"},
		},
		"a wait for a deletion that a read reports names the finalizers [F79]": {
			strategy: Update, results: []result{{going, nil}},
			want: []string{"read", "end is being deleted, held by finalizers a/b"},
		},
		"a wait for a deletion by the item names the finalizers [F79]": {
			strategy: Recreate, results: []result{{held, nil}, {other, nil}, {}},
			want: []string{"read", "apply forced dry of u", "delete of u", "end is being deleted, held by finalizers a/b, and is created again when it is gone"},
		},
		"an object that the caller declares unchanged needs no request":                                                {strategy: Update, same: true, want: []string{"end unchanged"}},
		"an object that the caller declares unchanged is updated in a forced run":                                      {strategy: Update, same: true, options: Options{Force: true}, results: []result{{ours, nil}, {ours, nil}}, want: []string{"read", "update", "end applied"}},
		"an object that the caller declares unchanged is updated with a new manifest":                                  {strategy: Update, same: true, entry: func(e *Entry) { e.Hash = "x" }, results: []result{{ours, nil}, {ours, nil}}, want: []string{"read", "update", "end applied"}},
		"an object that the caller declares unchanged is updated after an interrupted write":                           {strategy: Update, same: true, entry: func(e *Entry) { e.Pending = true }, results: []result{{ours, nil}, {ours, nil}}, want: []string{"read", "update", "end applied"}},
		"an object that the caller declares unchanged is created if it was never written":                              {strategy: Update, same: true, isNew: true, results: []result{{}, {ours, nil}}, want: []string{"read", "create", "end applied"}},
		"an object that the caller declares unchanged is waited for in deletion":                                       {strategy: Update, same: true, seen: &observe.State{UID: "u", Deleting: true}, want: []string{"end is being deleted, and is created again when it is gone"}},
		"an object with the strategy Recreate that the caller declares unchanged needs no request":                     {strategy: Recreate, same: true, want: []string{"end unchanged"}},
		"an object with the strategy OnDelete that the caller declares unchanged needs no request with a new manifest": {strategy: OnDelete, same: true, entry: func(e *Entry) { e.Hash = "x" }, want: []string{"end unchanged"}},
		"an object that was replaced is applied again":                                                                 {results: []result{{nil, otherUID()}, {ours, nil}}, want: []string{"apply forced of u", "apply", "end applied"}},
		"a change of an immutable field is an error":                                                                   {results: []result{{nil, immutableChange()}, {ours, nil}}, want: []string{"apply forced of u", "read", "end Forbidden: field is immutable"}},
		"a change of an immutable field recreates the object if that is allowed": {
			options: Options{Recreate: true}, results: []result{{nil, immutableChange()}, {ours, nil}, {}},
			want: []string{"apply forced of u", "read", "delete of u", "end is replaced, because an immutable field changed"},
		},
		"a list item whose key was changed is corrected": {
			results: []result{{nil, duplicateName()}, {other, nil}, {ours, nil}, {ours, nil}},
			want:    []string{"apply forced of u", "read", "update", "apply forced of u", "end applied"},
		},
		"a conflict during the correction of a list item ends the write": {
			results: []result{{nil, duplicateName()}, {other, nil}, {nil, conflictWithManager("kubectl", ".data.key")}},
			want:    []string{"apply forced of u", "read", "update", "end changed while it was written"},
		},
		"a list item whose key cannot be corrected is an error": {
			results: []result{{nil, duplicateName()}, {other, nil}, {nil, immutableChange()}},
			want:    []string{"apply forced of u", "read", "update", "end Duplicate value: \"x\""},
		},
		"a list item of an object that another item owns is not corrected": {
			results: []result{{nil, duplicateName()}, {theirs, nil}}, want: []string{"apply forced of u", "read", "end Duplicate value: \"x\""},
		},
		"the policy Immutable keeps an existing object":           {policy: Immutable, results: []result{{ours, nil}}, want: []string{"read", "end unchanged"}},
		"the policy Immutable ignores an object without an owner": {policy: Immutable, isNew: true, results: []result{{unowned, nil}}, want: []string{"read", "end"}},
		"the policy Fallback ignores an object without an owner":  {policy: Fallback, isNew: true, results: []result{{unowned, nil}}, want: []string{"read", "end"}},
		"the policy Fallback creates a missing object":            {policy: Fallback, isNew: true, results: []result{{}, {ours, nil}}, want: []string{"read", "apply", "end applied"}},
		"the strategy OnDelete keeps an existing object":          {strategy: OnDelete, results: []result{{ours, nil}}, want: []string{"read", "end unchanged"}},
		"the strategy OnDelete creates a missing object":          {strategy: OnDelete, results: []result{{}, {ours, nil}}, want: []string{"read", "create", "end applied"}},
		"the strategy Recreate deletes and creates a changed object": {
			strategy: Recreate, results: []result{{ours, nil}, {other, nil}, {}},
			want: []string{"read", "apply forced dry of u", "delete of u", "end is being deleted, and is created again when it is gone"},
		},
		"the strategy Update creates a missing object":          {strategy: Update, results: []result{{}, {ours, nil}}, want: []string{"read", "create", "end applied"}},
		"the strategy Update corrects changes of other clients": {strategy: Update, results: []result{{ours, nil}, {ours, nil}}, want: []string{"read", "update", "end applied"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := desiredMap(max(tc.policy, ""), tc.strategy)
			if o.Policy == "" {
				o.Policy = Manage
			}
			if o.Strategy == "" {
				o.Strategy = Apply
			}
			o.hash = hash(o)
			o.Unchanged = tc.same
			k := known{entryState: entryState{Entry: written(o)}, want: o, seen: tc.seen}
			if tc.entry != nil {
				tc.entry(&k.Entry)
			}
			if tc.isNew {
				k.fresh, k.UID, k.Key, k.Hash = true, "", "", ""
			}
			engine := New(nil, configMaps(), tc.options)
			s := decideApply(rules{Options: &engine.options, owner: me}, k)
			got := []string{summary(s)}
			for _, result := range tc.results {
				if s.effect == "" {
					break
				}
				s = s.after(rules{Options: &engine.options, owner: me}, result.live, result.err)
				got = append(got, summary(s))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// world is a fake cluster that contains at most one object. No other writer changes this object.
type world struct {
	live                *unstructured.Unstructured
	conflict, immutable error
	version             int
}

func (w *world) store(body *unstructured.Unstructured) *unstructured.Unstructured {
	w.version++
	out := body.DeepCopy()
	if w.live != nil {
		out = w.live.DeepCopy()
		out.Object["data"] = body.Object["data"]
		labels := out.GetLabels()
		for key, value := range body.GetLabels() {
			labels = merged(labels, key, value)
		}
		out.SetLabels(labels)
	} else {
		out.SetUID("new")
	}
	out.SetResourceVersion(fmt.Sprint(w.version))
	w.live = out
	return out.DeepCopy()
}

func merged(in map[string]string, key, value string) map[string]string {
	if in == nil {
		in = map[string]string{}
	}
	in[key] = value
	return in
}

func (w *world) do(s step) (*unstructured.Unstructured, error) {
	switch s.effect {
	case effectRead, effectReadMetadata:
		return w.live.DeepCopy(), nil
	case effectCreate:
		if w.live != nil {
			return nil, apierrors.NewAlreadyExists(configMap, "a")
		}
		return w.store(s.body), nil
	case effectDelete:
		return nil, w.remove(s)
	case effectMerge, effectTakeOver:
		if w.live == nil {
			return nil, apierrors.NewNotFound(configMap, "a")
		}
		return w.store(w.live), nil
	case effectApply, effectUpdate, effectPatch, effectAsk, effectFindOwners:
	}
	switch {
	case s.uid != "" && (w.live == nil || w.live.GetUID() != s.uid):
		return nil, otherUID()
	case w.live != nil && w.conflict != nil && !s.force && s.effect == effectApply && s.body.Object["data"] != nil:
		return nil, w.conflict
	case w.live != nil && w.immutable != nil:
		return nil, w.immutable
	case s.dry:
		return liveMap(s.uid, "x", nil), nil
	case s.body == nil:
		return w.store(w.live), nil
	}
	return w.store(s.body), nil
}

func (w *world) remove(s step) error {
	switch {
	case w.live == nil:
		return apierrors.NewNotFound(configMap, "a")
	case w.live.GetUID() != s.uid:
		return otherUID()
	case len(w.live.GetFinalizers()) > 0:
		w.live.SetDeletionTimestamp(&metav1.Time{})
		w.store(w.live)
	default:
		w.live = nil
	}
	return nil
}

// walk takes the steps for an object. The test fails if there are too many steps, or if the same step is taken twice
// although the object has not changed in between.
func walk(t *testing.T, about string, r rules, w *world, s step) {
	t.Helper()
	taken := map[string]bool{}
	path := []string{}
	for s.effect != "" {
		this := fmt.Sprintf("%s after %q, having read %s and written %s", summary(s), s.known.result, versionOf(s.known.live), versionOf(s.known.answer))
		path = append(path, this)
		if taken[this] || len(path) > maxSteps {
			t.Errorf("%s: %s", about, strings.Join(path, ", "))
			return
		}
		taken[this] = true
		live, err := w.do(s)
		s = s.after(r, live, err)
	}
}

func versionOf(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "nothing"
	}
	return obj.GetResourceVersion()
}

// TestDecisionsEnd checks that the work on an object ends after a few steps if no other writer changes the object. It
// uses random objects and options.
func TestDecisionsEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	pick := func(n int) int { return random.IntN(n) }
	finalizer := func(o *unstructured.Unstructured) { me.Stamp(o); o.SetFinalizers([]string{"example.org/f"}) }
	deleting := func(o *unstructured.Unstructured) { finalizer(o); o.SetDeletionTimestamp(&metav1.Time{}) }
	landscaper := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{landscaperLabel: "n"}) }
	both := func(o *unstructured.Unstructured) { someone.Stamp(o); me.StampShared(o) }
	changes := []func(*unstructured.Unstructured){nil, me.Stamp, someone.Stamp, both, finalizer, deleting, landscaper}
	managers := []string{"kubectl", me.Manager(), someone.Manager()}
	policies := []Policy{Manage, Fallback, Keep, Immutable}
	strategies := []Strategy{Apply, Update, Patch, Merge, MergeOverwrite, Recreate, OnDelete}
	conflicts := []error{nil, conflictWithManager("kubectl", ".data.key"), conflictWithManager(someone.Manager(), ".metadata.labels."+ownership.LabelItem)}
	for range 20_000 {
		if t.Failed() {
			return
		}
		o := desiredMap(policies[pick(4)], strategies[pick(7)])
		options := Options{Recreate: pick(2) == 0, RefuseUnowned: pick(2) == 0, Force: pick(2) == 0, Adoption: append(Adoptions(), "")[pick(4)]}
		if pick(2) == 0 {
			options.SharedKinds = []schema.GroupKind{{Kind: "ConfigMap"}}
		}
		r := rules{Options: &New(nil, nil, options).options, owner: me}
		w := &world{version: 1, conflict: conflicts[pick(3)]}
		if pick(3) == 0 {
			w.immutable = immutableChange()
		}
		if pick(8) > 0 {
			w.live = liveMap("u", managers[pick(3)], changes[pick(len(changes))])
		}
		k := known{entryState: entryState{gone: true}, want: o}
		k.entryState.want(o)
		if pick(2) == 0 {
			k.fresh, k.UID, k.Hash = false, []types.UID{"u", "v", ""}[pick(3)], []string{"", o.hash, "x"}[pick(3)]
			k.Pending, k.Shared, k.Adopted, k.Deleting = pick(4) == 0, pick(3) == 0, pick(3) == 0, pick(4) == 0
			k.PatchBeforeDelete = []map[string]any{nil, {"data": map[string]any{}}}[pick(2)]
		}
		about := fmt.Sprintf("%s %s %+v %+v in %+v", o.Policy, o.Strategy, options, k.Entry, w.live)
		if pick(3) > 0 {
			walk(t, about, r, w, decideApply(r, k))
			continue
		}
		k.want, k.removeFinalizers = nil, pick(2) == 0
		walk(t, "delete "+about, r, w, decideRemove(r, k))
	}
}
