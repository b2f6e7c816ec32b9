// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/upkeep"
)

// lookAs returns a run of the item anna, which wrote some versions.
func lookAs(o *fakeObserver, written map[string]string) *run {
	r := &run{item: item("a"), observer: o.observer, memory: &memory{written: map[apply.Ref]string{}}, up: &upkeep.Run{Owner: anna}}
	r.item.UID = anna.UID
	for name, version := range written {
		r.memory.written[entry(name).Ref()] = version
	}
	return r
}

func entry(name string) apply.Entry {
	return apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "x", Name: name, UID: types.UID("x" + name)}
}

func TestNothingOlderThanTheOwnLastWriteIsSeen(t *testing.T) {
	cases := map[string]struct {
		reason  string
		name    string
		written string
		found   bool
		sure    bool
	}{
		"there":           {"the informer has it", "one", "", true, true},
		"as written":      {"the informer has seen our write", "one", "5", true, true},
		"written later":   {"the informer lags", "one", "9", true, false},
		"gone":            {"it may only have lost its mark", "missing", "6", false, false},
		"not there yet":   {"the informer has not seen our write, which made it", "missing", "9", false, false},
		"never there":     {"nobody knows what we wrote", "missing", "", false, false},
		"somebody else's": {"its mark is that of another item now", "theirs", "", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observe(t, nil, child(anna, "x", "one", "5"), child(bert, "x", "theirs", "7"))
			v, err := o.view(t.Context(), configMaps, []string{"x"})
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the first list is not told", func() bool { return o.wokenUp(anna.UID) == 1 && o.wokenUp(bert.UID) == 1 })
			r := lookAs(o, map[string]string{tc.name: tc.written})
			obj, sure := r.seen(t.Context(), v, entry(tc.name))
			if found := obj != nil; found != tc.found || sure != tc.sure {
				t.Errorf("%s: found %t, sure %t; want %t, %t", tc.reason, found, sure, tc.found, tc.sure)
			}
		})
	}
}

func TestAnInformerThatLagsIsWaitedFor(t *testing.T) {
	o := observe(t, nil, child(anna, "x", "one", "5"))
	v, err := o.view(t.Context(), configMaps, []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	r := lookAs(o, map[string]string{"one": "6"})
	late := time.AfterFunc(20*time.Millisecond, func() {
		_, err := o.client.Resource(configMaps).Namespace("x").Update(t.Context(), child(anna, "x", "one", "6"), metav1.UpdateOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	defer late.Stop()
	obj, sure := r.seen(t.Context(), v, entry("one"))
	if !sure || obj == nil || obj.GetResourceVersion() != "6" {
		t.Errorf("seen %v, sure %t; want what was written", obj, sure)
	}
}

func TestWhatIsRememberedOfAWrite(t *testing.T) {
	r := lookAs(observe(t, nil), map[string]string{"old": "3"})
	r.up.Inventory = apply.Inventory{Entries: []apply.Entry{entry("one"), entry("two")}}
	r.memory.remember(r.up.Inventory, apply.Report{Owned: []apply.Owned{{UID: "xone", ResourceVersion: "8"}, {UID: "xtwo"}, {UID: "unknown", ResourceVersion: "9"}}})
	if diff := cmp.Diff(map[apply.Ref]string{entry("one").Ref(): "8"}, r.memory.written); diff != "" {
		t.Error(diff)
	}
}

func TestPlacesAreWhereChildrenMayBe(t *testing.T) {
	cases := map[string]struct {
		reason  string
		allowed []string
		want    []string
	}{
		"default": {"the item's own", nil, []string{"ns", "x"}},
		"listed":  {"those that are allowed", []string{"a", "b"}, []string{"a", "b", "x"}},
		"any":     {"only where it has some", []string{AnyNamespace}, []string{"x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &run{deployer: &deployer{options: Options{Namespaces: tc.allowed}}, item: item("a")}
			if diff := cmp.Diff(tc.want, r.placesOf([]apply.Entry{entry("one"), {Name: "cluster-scoped"}})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEntriesOfAKindInAnyVersion(t *testing.T) {
	old := apply.Entry{APIVersion: "extensions/v1beta1", Kind: "Deployment", Name: "a"}
	other := apply.Entry{APIVersion: "extensions/v1", Kind: "Deployment", Name: "b"}
	r := &run{up: &upkeep.Run{Inventory: apply.Inventory{Entries: []apply.Entry{old, entry("one"), other}}}}
	if diff := cmp.Diff([]apply.Entry{old, other}, entriesOf(r.up.Inventory, old.Ref().GVK().GroupKind())); diff != "" {
		t.Error(diff)
	}
}

// TestUnobservedKinds checks that a kind that the target does not have needs no observation.
func TestUnobservedKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		unobserved schema.GroupKind
		want       time.Duration
	}{
		"a kind of a child that cannot be observed is polled [F30]": {schema.GroupKind{Kind: "ConfigMap"}, pollPartly},
		"a kind without children is not [F30]":                      {schema.GroupKind{Kind: "Secret"}, pollObserved},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{unobserved: map[schema.GroupKind]bool{tc.unobserved: true}, up: &upkeep.Run{Inventory: apply.Inventory{Entries: []apply.Entry{entry("one")}}}}
			if got := r.poll(&SyncResponse{}); got != tc.want {
				t.Errorf("looks again after %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("a kind that the target refuses is noted, and only that [F30]", func(t *testing.T) {
		r := lookAs(observe(t, nil), nil)
		r.deployer, r.unobserved = &deployer{}, map[schema.GroupKind]bool{}
		for reason, kind := range map[string]string{"": "ConfigMap", "forbidden": "Secret"} {
			if _, err := r.lookAt(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: kind}, view{reason: reason}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if r.unobserved[schema.GroupKind{Kind: "ConfigMap"}] || !r.unobserved[schema.GroupKind{Kind: "Secret"}] {
			t.Error(r.unobserved)
		}
	})
}

func TestSkippedEntriesStayAsTheyWere(t *testing.T) {
	before := entry("one")
	before.Key, before.Hash = "key", "hash"
	r := &run{skipped: map[apply.Ref]apply.Entry{before.Ref(): before}}
	got := r.keepSkipped(apply.Inventory{Entries: []apply.Entry{entry("one"), entry("two")}})
	if diff := cmp.Diff([]apply.Entry{before, entry("two")}, got.Entries); diff != "" {
		t.Error(diff)
	}
}
