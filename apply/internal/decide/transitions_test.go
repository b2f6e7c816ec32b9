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

// generator makes random choices that are the same in each run of a test. It makes the manifests and the objects in the
// cluster only once, because the machines do not modify them.
type generator struct {
	*rand.Rand
	manifests []*Manifest
	lives     []*unstructured.Unstructured
	errs      []error
}

func newGenerator() generator {
	c := generator{Rand: rand.New(rand.NewPCG(2, 2))} //nolint:gosec // the same each time; finds all transitions early
	for range 300 {
		c.manifests = append(c.manifests, c.newManifest())
	}
	for range 2000 {
		c.lives = append(c.lives, c.newLive())
	}
	immutable := newImmutableError()
	c.errs = []error{
		immutable, immutable, immutable, newUIDError(), newDuplicateError(),
		newConflictError("kubectl", ".data.key"), newConflictError(otherOwner.FieldManager(), ".data.key"),
		apierrors.NewNotFound(configMap, "a"), apierrors.NewAlreadyExists(configMap, "a"), apierrors.NewForbidden(configMap, "a", errNotAllowed),
		apierrors.NewBadRequest("webhook x does not support dry run"), errors.New("request to convert CR to an invalid group/version: v0"),
	}
	return c
}

// isOneIn reports true once in n times.
func (c generator) isOneIn(n int) bool { return c.IntN(n) == 0 }

func selectFrom[T any](c generator, list ...T) T { return list[c.IntN(len(list))] }

// newManifest returns a manifest with a random strategy and policy.
func (c generator) newManifest() *Manifest {
	policy := selectFrom(c, func(*Manifest) {}, func(*Manifest) {}, func(*Manifest) {}, withSkipIfForeign, withCreateOnly)
	strategy := selectFrom(c, "apply", "apply", "recreate", "recreate", "recreate", "onDelete", "update", "patch", "merge", "mergeOverwrite")
	return newManifest(strategy, policy, func(m *Manifest) {
		m.Object.Object["items"] = []any{map[string]any{"name": "x", "port": int64(1)}}
		m.RejectUnowned, m.ReleaseAdopted, m.Unchanged = c.isOneIn(3), !c.isOneIn(4), c.isOneIn(10)
	})
}

func (c generator) newRules() *Rules {
	return newRules(func(r *Rules) {
		r.Recreate, r.Force, r.RecreateFinished, r.MustAskToCorrect, r.CanFindOwners = c.isOneIn(2), c.isOneIn(4), c.isOneIn(4), c.isOneIn(2), !c.isOneIn(3)
		if r.LandscaperManagers = []string{"landscaper"}; c.isOneIn(2) {
			withSharedKinds(r)
		}
	})
}

// newFacts returns what may be known about an object before the first step.
func (c generator) newFacts(m *Manifest) Facts {
	f := Facts{Record: object.Record{Entry: newEntry("", ""), IsNew: true}, Manifest: m}
	if c.isOneIn(4) {
		return f
	}
	f.IsNew, f.UID, f.Hash, f.Fingerprint = false, types.UID(selectFrom(c, "u", "u", "u", "v", "")), selectFrom(c, m.Hash, m.Hash, "", "", "x"), selectFrom[ownership.Fingerprint](c, "k", "")
	f.Pending, f.Shared, f.Adopted, f.Deleting = c.isOneIn(4), c.isOneIn(4), c.isOneIn(4), c.isOneIn(5)
	f.Finish = selectFrom[object.Finish](c, "", "", "", object.FinishExpected, object.FinishGone)
	if c.isOneIn(2) {
		f.PatchBeforeDelete = map[string]any{"data": map[string]any{}}
	}
	if c.isOneIn(2) {
		f.Watched = &observe.State{UID: types.UID(selectFrom(c, "u", "u", "v")), Fingerprint: selectFrom[ownership.Fingerprint](c, "k", "x", "x"), Deleting: c.isOneIn(8), Item: types.UID(selectFrom(c, "item", "item", "other"))}
	}
	f.WasApplied, f.RemoveFinalizers, f.Ignored = c.isOneIn(5), c.isOneIn(3), c.isOneIn(2)
	return f
}

// start returns the first step of a machine.
func (c generator) start(r *Rules, f Facts) Step {
	begin := selectFrom(c, Write, Write, Write, Write, Write, PatchAfterDeployment)
	switch {
	case c.isOneIn(3):
		f.Manifest, begin = nil, selectFrom(c, Remove, Release)
	case f.UID == "":
		begin = Write
	}
	if f.Manifest == nil && c.isOneIn(10) {
		f.AnyOwner = true
	}
	return begin(r, f)
}

// newLive returns an object in the cluster, or nil.
func (c generator) newLive() *unstructured.Unstructured {
	if c.isOneIn(6) {
		return nil
	}
	obj := newConfigMap(selectFrom(c, "1", "2"))
	obj.Object["items"] = []any{map[string]any{"name": selectFrom(c, "x", "y"), "port": int64(1)}}
	obj.SetUID(types.UID(selectFrom(c, "u", "u", "u", "v")))
	obj.SetResourceVersion(selectFrom(c, "1", "2"))
	selectFrom(c, func(*unstructured.Unstructured) {}, testOwner.Mark, testOwner.Mark, otherOwner.Mark, testOwner.MarkShared)(obj)
	selectFrom(c, func(*unstructured.Unstructured) {}, otherOwner.MarkShared, testOwner.MarkShared)(obj)
	if c.isOneIn(8) {
		obj.SetLabels(map[string]string{landscaperLabel: selectFrom(c, "n", "m")})
	}
	if c.isOneIn(3) {
		_ = unstructured.SetNestedField(obj.Object, ownership.PolicyReleased, "metadata", "annotations", ownership.AnnotationPolicy)
	}
	created := metav1.Unix(1, 0)
	obj.SetCreationTimestamp(created)
	var entries []metav1.ManagedFieldsEntry
	for _, manager := range []string{"kubectl", "landscaper", testOwner.FieldManager(), testOwner.PatchFieldManager(), otherOwner.FieldManager()} {
		if c.isOneIn(3) {
			entries = append(entries, metav1.ManagedFieldsEntry{
				Manager: manager, Operation: selectFrom(c, metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate), APIVersion: selectFrom(c, "v1", "v0"),
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}}}`), Time: selectFrom(c, &created, &metav1.Time{Time: time.Unix(2, 0)}),
			})
		}
	}
	obj.SetManagedFields(entries)
	if c.isOneIn(6) {
		obj.SetDeletionTimestamp(&created)
		obj.SetFinalizers(selectFrom(c, nil, []string{"a/b"}))
	}
	return obj
}

// newResponse returns a response to the request of a step.
func (c generator) newResponse(s Step) Response {
	switch s.Effect {
	case EffectAsk:
		return Response{Err: selectFrom(c, nil, errNotAllowed)}
	case EffectFindOwners:
		res := Response{}
		state := selectFrom(c, object.OwnerExists, object.OwnerGone, object.OwnerUnknown)
		for range s.Owners {
			res.Owners = append(res.Owners, state)
		}
		return res
	case EffectRead, EffectReadMetadata, EffectCreate, EffectApply, EffectUpdate, EffectPatch, EffectMerge, EffectRename, EffectDelete:
	}
	res := Response{Live: selectFrom(c, c.lives...)}
	if c.isOneIn(2) {
		res.Err = selectFrom(c, c.errs...)
	}
	isRead := s.Effect == EffectRead || s.Effect == EffectReadMetadata
	switch {
	case isRead && res.Live == nil:
		res.Err = apierrors.NewNotFound(configMap, "a")
	case isRead && !c.isOneIn(8):
		res.Err = nil
	case res.Live == nil && res.Err == nil:
		res.Err = apierrors.NewNotFound(configMap, "a")
	}
	return res
}

// TestTransitions answers random requests for random objects at random. It checks that the table of the states contains
// exactly the transitions that occur. A migration can interrupt each state, and is not in the table.
func TestTransitions(t *testing.T) {
	const least, most = 200_000, 3_000_000
	c, found, first := newGenerator(), map[State][]State{}, map[State]bool{}
	for i := 0; i < most && (i < least || !isComplete(found)); i++ {
		r := c.newRules()
		s := c.start(r, c.newFacts(selectFrom(c, c.manifests...)))
		first[s.State] = true
		for steps := 0; s.Effect != "" && steps < maxSteps; steps++ {
			before := s.State
			s = s.HandleResponse(r, c.newResponse(s))
			isInterrupted := s.State == migrateReading || before == migrateRenaming
			if s.Effect != "" && !isInterrupted && !slices.Contains(found[before], s.State) {
				found[before] = append(found[before], s.State)
			}
		}
	}
	for _, row := range states {
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
	return !slices.ContainsFunc(states, func(row Row) bool { return len(row.Next) > len(found[row.State]) })
}

// TestListStates checks that each request has a state that the table contains.
func TestListStates(t *testing.T) {
	for _, row := range states {
		if row.handle == nil || row.Action == "" || handlers[row.State] == nil {
			t.Errorf("the row of the state %s is incomplete", row.State)
		}
	}
	if len(handlers) != len(states) {
		t.Errorf("%d rows have %d states, want one row for each state", len(states), len(handlers))
	}
}
