// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// chance makes random choices that are the same in each run of a test. It makes the manifests and the objects in the
// cluster only once, because the machines do not modify them.
type chance struct {
	*rand.Rand
	manifests []*Manifest
	lives     []*unstructured.Unstructured
	errs      []error
}

func newChance() chance {
	c := chance{Rand: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // the same each time
	for range 300 {
		c.manifests = append(c.manifests, c.newManifest())
	}
	for range 2000 {
		c.lives = append(c.lives, c.newLive())
	}
	immutable := immutableChange()
	c.errs = []error{
		immutable, immutable, immutable, otherUID(), duplicateName(),
		conflictWithManager("kubectl", ".data.key"), conflictWithManager(someone.Manager(), ".data.key"),
		apierrors.NewNotFound(configMap, "a"), apierrors.NewAlreadyExists(configMap, "a"), apierrors.NewForbidden(configMap, "a", errNotAllowed),
		apierrors.NewBadRequest("webhook x does not support dry run"), errors.New("request to convert CR to an invalid group/version: v0"),
	}
	return c
}

// one reports true once in n times.
func (c chance) one(n int) bool { return c.IntN(n) == 0 }

func pickFrom[T any](c chance, list ...T) T { return list[c.IntN(len(list))] }

// newManifest returns a manifest with a random strategy and policy.
func (c chance) newManifest() *Manifest {
	policy := pickFrom(c, func(*Manifest) {}, func(*Manifest) {}, func(*Manifest) {}, leftToOthers, onlyCreated)
	strategy := pickFrom(c, "apply", "apply", "recreate", "recreate", "recreate", "onDelete", "update", "patch", "merge", "mergeOverwrite")
	return newManifest(strategy, policy, func(m *Manifest) {
		m.Object.Object["items"] = []any{map[string]any{"name": "x", "port": int64(1)}}
		m.Refused, m.Released, m.Unchanged = c.one(3), !c.one(4), c.one(10)
	})
}

func (c chance) rules() *Rules {
	return newRules(func(r *Rules) {
		r.Recreate, r.Force, r.Rerun, r.AsksToCorrect, r.CanFindOwners = c.one(2), c.one(4), c.one(4), c.one(2), !c.one(3)
		if r.LandscaperManagers = []string{"landscaper"}; c.one(2) {
			sharing(r)
		}
	})
}

// facts returns what may be known about an object before the first step.
func (c chance) facts(m *Manifest) Facts {
	f := Facts{Record: object.Record{Entry: newEntry("", ""), IsNew: true}, Want: m}
	if c.one(4) {
		return f
	}
	f.IsNew, f.UID, f.Hash, f.Key = false, types.UID(pickFrom(c, "u", "u", "u", "v", "")), pickFrom(c, m.Hash, m.Hash, "", "", "x"), pickFrom[ownership.Key](c, "k", "")
	f.Pending, f.Shared, f.Adopted, f.Deleting = c.one(4), c.one(4), c.one(4), c.one(5)
	f.Finish = pickFrom[object.Finish](c, "", "", "", object.FinishExpected, object.FinishGone)
	if c.one(2) {
		f.PatchBeforeDelete = map[string]any{"data": map[string]any{}}
	}
	if c.one(2) {
		f.Seen = &observe.State{UID: types.UID(pickFrom(c, "u", "u", "v")), Key: pickFrom[ownership.Key](c, "k", "x", "x"), Deleting: c.one(8), Item: types.UID(pickFrom(c, "item", "item", "other"))}
	}
	f.WasApplied, f.RemoveFinalizers, f.Ignored = c.one(5), c.one(3), c.one(2)
	return f
}

// start returns the first step of a machine.
func (c chance) start(r *Rules, f Facts) Step {
	begin := pickFrom(c, Write, Write, Write, Write, Write, PatchAfterDeployment)
	switch {
	case c.one(3):
		f.Want, begin = nil, pickFrom(c, Remove, Release)
	case f.UID == "":
		begin = Write
	}
	if f.Want == nil && c.one(10) {
		f.AnyOwner = true
	}
	return begin(r, f)
}

// newLive returns an object in the cluster, or nil.
func (c chance) newLive() *unstructured.Unstructured {
	if c.one(6) {
		return nil
	}
	obj := newConfigMap(pickFrom(c, "1", "2"))
	obj.Object["items"] = []any{map[string]any{"name": pickFrom(c, "x", "y"), "port": int64(1)}}
	obj.SetUID(types.UID(pickFrom(c, "u", "u", "u", "v")))
	obj.SetResourceVersion(pickFrom(c, "1", "2"))
	pickFrom(c, func(*unstructured.Unstructured) {}, me.Stamp, me.Stamp, someone.Stamp, me.StampShared)(obj)
	pickFrom(c, func(*unstructured.Unstructured) {}, someone.StampShared, me.StampShared)(obj)
	if c.one(8) {
		obj.SetLabels(map[string]string{landscaperLabel: pickFrom(c, "n", "m")})
	}
	if c.one(3) {
		_ = unstructured.SetNestedField(obj.Object, ownership.PolicyReleased, "metadata", "annotations", ownership.AnnotationPolicy)
	}
	created := metav1.Unix(1, 0)
	obj.SetCreationTimestamp(created)
	var entries []metav1.ManagedFieldsEntry
	for _, manager := range []string{"kubectl", "landscaper", me.Manager(), me.PatchManager(), someone.Manager()} {
		if c.one(3) {
			entries = append(entries, metav1.ManagedFieldsEntry{
				Manager: manager, Operation: pickFrom(c, metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate), APIVersion: pickFrom(c, "v1", "v0"),
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}}}`), Time: pickFrom(c, &created, &metav1.Time{Time: time.Unix(2, 0)}),
			})
		}
	}
	obj.SetManagedFields(entries)
	if c.one(6) {
		obj.SetDeletionTimestamp(&created)
		obj.SetFinalizers(pickFrom(c, nil, []string{"a/b"}))
	}
	return obj
}

// respond returns a response to the request of a step.
func (c chance) respond(s Step) Response {
	switch s.Effect {
	case EffectAsk:
		return Response{Err: pickFrom(c, nil, errNotAllowed)}
	case EffectFindOwners:
		res := Response{}
		state := pickFrom(c, object.OwnerExists, object.OwnerGone, object.OwnerUnknown)
		for range s.Owners {
			res.Owners = append(res.Owners, state)
		}
		return res
	case EffectRead, EffectReadMetadata, EffectCreate, EffectApply, EffectUpdate, EffectPatch, EffectMerge, EffectRename, EffectDelete:
	}
	res := Response{Live: pickFrom(c, c.lives...)}
	if c.one(2) {
		res.Err = pickFrom(c, c.errs...)
	}
	isRead := s.Effect == EffectRead || s.Effect == EffectReadMetadata
	switch {
	case isRead && res.Live == nil:
		res.Err = apierrors.NewNotFound(configMap, "a")
	case isRead && !c.one(8):
		res.Err = nil
	case res.Live == nil && res.Err == nil:
		res.Err = apierrors.NewNotFound(configMap, "a")
	}
	return res
}

// TestTransitions answers random requests for random objects at random. It checks that the table of the states contains
// exactly the transitions that occur. A migration can interrupt each state, and is not in the table.
func TestTransitions(t *testing.T) {
	const least, most = 50_000, 1_000_000
	c, found, first := newChance(), map[State][]State{}, map[State]bool{}
	for i := 0; i < most && (i < least || !isComplete(found)); i++ {
		r := c.rules()
		s := c.start(r, c.facts(pickFrom(c, c.manifests...)))
		first[s.State] = true
		for steps := 0; s.Effect != "" && steps < maxSteps; steps++ {
			before := s.State
			s = s.After(r, c.respond(s))
			isInterrupted := s.State == migrateReading || before == migrateRenaming
			if s.Effect != "" && !isInterrupted && !slices.Contains(found[before], s.State) {
				found[before] = append(found[before], s.State)
			}
		}
	}
	for _, row := range table {
		t.Run(string(row.State)+" has the successors that occur", func(t *testing.T) {
			got := slices.Sorted(slices.Values(found[row.State]))
			if diff := cmp.Diff(slices.Sorted(slices.Values(row.Next)), got); diff != "" {
				t.Errorf("successors (-want +got):\n%s", diff)
			}
			if first[row.State] != row.IsFirst {
				t.Errorf("the work on an object begins in the state: %t, want %t", first[row.State], row.IsFirst)
			}
		})
	}
}

// isComplete reports whether all transitions of the table were found.
func isComplete(found map[State][]State) bool {
	return !slices.ContainsFunc(table, func(row Row) bool { return len(row.Next) > len(found[row.State]) })
}

// TestTable checks that each request has a state that the table contains.
func TestTable(t *testing.T) {
	for _, row := range table {
		if row.handle == nil || row.Action == "" || handlers[row.State] == nil {
			t.Errorf("the row of the state %s is incomplete", row.State)
		}
	}
	if len(handlers) != len(table) {
		t.Errorf("%d rows have %d states, want one row for each state", len(table), len(handlers))
	}
}
