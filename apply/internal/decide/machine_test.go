// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// fakeStore is a fake cluster that contains at most one object. No other writer changes this object.
type fakeStore struct {
	live                *unstructured.Unstructured
	conflict, immutable error
	version             int
}

func (w *fakeStore) store(body *unstructured.Unstructured) *unstructured.Unstructured {
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

func (w *fakeStore) do(s Step) (*unstructured.Unstructured, error) {
	switch s.Effect {
	case EffectRead, EffectReadMetadata:
		return w.live.DeepCopy(), nil
	case EffectCreate:
		if w.live != nil {
			return nil, apierrors.NewAlreadyExists(configMap, "a")
		}
		return w.store(s.Body), nil
	case EffectDelete:
		return nil, w.remove(s)
	case EffectMerge, EffectRename:
		if w.live == nil {
			return nil, apierrors.NewNotFound(configMap, "a")
		}
		return w.store(w.live), nil
	case EffectApply, EffectUpdate, EffectPatch, EffectAsk, EffectFindOwners:
	}
	switch {
	case s.UID != "" && (w.live == nil || w.live.GetUID() != s.UID):
		return nil, newUIDError()
	case w.live != nil && w.conflict != nil && !s.Force && s.Effect == EffectApply && s.Body.Object["data"] != nil:
		return nil, w.conflict
	case w.live != nil && w.immutable != nil:
		return nil, w.immutable
	case s.DryRun:
		return liveMap(s.UID, "x", nil), nil
	case s.Body == nil:
		return w.store(w.live), nil
	}
	return w.store(s.Body), nil
}

func (w *fakeStore) remove(s Step) error {
	switch {
	case w.live == nil:
		return apierrors.NewNotFound(configMap, "a")
	case w.live.GetUID() != s.UID:
		return newUIDError()
	case len(w.live.GetFinalizers()) > 0:
		w.live.SetDeletionTimestamp(&metav1.Time{})
		w.store(w.live)
	default:
		w.live = nil
	}
	return nil
}

// maxSteps is the number of steps after which the engine gives up.
const maxSteps = 11

// runMachine takes the steps for an object. The test fails if there are too many steps, or if the same step is taken
// twice although the object has not changed in between.
func runMachine(t *testing.T, about string, r *Rules, w *fakeStore, s Step) {
	t.Helper()
	taken := map[string]bool{}
	path := []string{}
	for s.Effect != "" {
		this := fmt.Sprintf("%s after %q, having read %s and written %s", formatStep(s), s.Facts.class, getVersion(s.Facts.Live), getVersion(s.Facts.Answer))
		path = append(path, this)
		if taken[this] || len(path) > maxSteps {
			t.Errorf("%s: %s", about, strings.Join(path, ", "))
			return
		}
		taken[this] = true
		live, err := w.do(s)
		s = s.HandleResponse(r, Response{Live: live, Err: err})
	}
}

func getVersion(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "nothing"
	}
	return obj.GetResourceVersion()
}

// TestMachinesEnd checks that the work on an object ends after a few steps if no other writer changes the object. It
// uses random objects and options.
func TestMachinesEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	pick := func(n int) int { return random.IntN(n) }
	finalizer := func(o *unstructured.Unstructured) { testOwner.Mark(o); o.SetFinalizers([]string{"example.org/f"}) }
	deleting := func(o *unstructured.Unstructured) { finalizer(o); o.SetDeletionTimestamp(&metav1.Time{}) }
	landscaper := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{landscaperLabel: "n"}) }
	both := func(o *unstructured.Unstructured) { otherOwner.Mark(o); testOwner.MarkShared(o) }
	changes := []func(*unstructured.Unstructured){nil, testOwner.Mark, otherOwner.Mark, both, finalizer, deleting, landscaper}
	managers := []string{"kubectl", testOwner.FieldManager(), otherOwner.FieldManager()}
	policies := []func(*Manifest){func(*Manifest) {}, withSkipIfForeign, withCreateOnly}
	conflicts := []error{nil, newConflictError("kubectl", ".data.key"), newConflictError(otherOwner.FieldManager(), ".metadata.labels."+ownership.LabelItem)}
	for range 20_000 {
		if t.Failed() {
			return
		}
		m := newManifest(strategies[pick(len(strategies))].Name, policies[pick(len(policies))], func(m *Manifest) { m.RejectUnowned, m.ReleaseAdopted = pick(4) == 0, pick(4) > 0 })
		r := newRules(func(r *Rules) { r.Recreate, r.Force = pick(2) == 0, pick(2) == 0 })
		if pick(2) == 0 {
			withSharedKinds(r)
		}
		w := &fakeStore{version: 1, conflict: conflicts[pick(3)]}
		if pick(3) == 0 {
			w.immutable = newImmutableError()
		}
		if pick(8) > 0 {
			w.live = liveMap("u", managers[pick(3)], changes[pick(len(changes))])
		}
		f := Facts{Record: object.Record{Entry: newEntry("", ""), IsNew: true}, Manifest: m}
		if pick(2) == 0 {
			f.IsNew, f.UID, f.Hash = false, []types.UID{"u", "v", ""}[pick(3)], []string{"", m.Hash, "x"}[pick(3)]
			f.Pending, f.Shared, f.Adopted, f.Deleting = pick(4) == 0, pick(3) == 0, pick(3) == 0, pick(4) == 0
			f.PatchBeforeDelete = []map[string]any{nil, {"data": map[string]any{}}}[pick(2)]
		}
		about := fmt.Sprintf("%+v %+v %+v in %+v", m, r, f.Entry, w.live)
		if pick(3) > 0 {
			runMachine(t, about, r, w, Write(r, f))
			continue
		}
		f.Manifest, f.RemoveFinalizers = nil, pick(2) == 0
		runMachine(t, "delete "+about, r, w, Remove(r, f))
	}
}
