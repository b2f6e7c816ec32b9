// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// shownLookup is a Lookup that returns the same state for every object. Only the UID differs: it is the name of the
// object.
type shownLookup observe.State

func (s shownLookup) Get(_ schema.GroupVersionResource, name types.NamespacedName) (observe.State, bool) {
	out := observe.State(s)
	out.UID = types.UID(name.Name)
	return out, true
}

// TestWatchedObjects covers objects whose state a watch shows, so that the engine sends no request. The engine has no
// client: a request would panic.
func TestWatchedObjects(t *testing.T) {
	t.Run("an object that is being deleted is waited for, and not written [F28, Rx3]", func(t *testing.T) {
		desired, inv := newDeployed(t, 3)
		for _, o := range []Options{{}, {Force: true}} {
			o.Watched = shownLookup{Fingerprint: "key", Deleting: true}
			_, report, err := New(nil, newConfigMapMapper(), o).Apply(t.Context(), ownership.Owner{UID: "item"}, desired, inv)
			if err != nil || len(report.Waiting) != 3 || report.Applied+report.Unchanged != 0 {
				t.Errorf("%+v, %v", report, err)
			}
		}
	})
	t.Run("an object that others changed is left while it may not be put right [F24]", func(t *testing.T) {
		desired, inv := newDeployed(t, 3)
		var asked []string
		o := Options{Concurrency: 1, Watched: shownLookup{Fingerprint: "theirs"}, CanCorrect: func(d DriftedObject) bool { asked = append(asked, d.Ref.Name); return false }}
		out, report, err := New(nil, newConfigMapMapper(), o).Apply(t.Context(), ownership.Owner{UID: "item"}, desired, inv)
		if err != nil || report.Unchanged != 3 || len(report.Postponed) != 3 || !slices.Equal(asked, []string{"c-0000", "c-0001", "c-0002"}) {
			t.Errorf("%+v, %v; asked about %v", report, err, asked)
		}
		if !slices.EqualFunc(out.Entries, inv.Entries, func(a, b Entry) bool { return a.Fingerprint == b.Fingerprint && a.Hash == b.Hash }) {
			t.Error("the inventory has changed")
		}
	})
}
