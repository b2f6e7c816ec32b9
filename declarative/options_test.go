// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsDefault(t *testing.T) {
	tracking := &Tracking{}
	children := []ChildKind{{APIVersion: "v1", Kind: "Pod"}}
	o := Options{Children: children, Tracking: tracking}
	o.Default()
	want := Options{
		Name: "declarative", Children: []ChildKind{{APIVersion: "v1", Kind: "Pod", Update: StrategyApply}}, MinInterval: time.Second, Concurrency: 1,
		Tracking: &Tracking{InstanceLabel: "app.kubernetes.io/instance", ManagedByLabel: "app.kubernetes.io/managed-by"},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if children[0].Update != "" || *tracking != (Tracking{}) {
		t.Error("what the caller handed in was changed")
	}
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}

func TestOptionsValidate(t *testing.T) {
	o := Options{
		Children: []ChildKind{
			{APIVersion: "", Kind: ""}, {APIVersion: "apps/v1", Kind: "Deployment", Update: "Merge", Adopt: "sometimes"}, {APIVersion: "apps/v2", Kind: "Deployment"}, {APIVersion: "a/b/c", Kind: "K"},
		},
		Name: "no label!", Namespaces: []string{"a", "A", "a", "*"}, Resync: -1, MinInterval: -1,
		Labels:   map[string]string{"deployerkit.dev/x": "y", "ok": "not ok"},
		Tracking: &Tracking{InstanceLabel: "same", ManagedByLabel: "same"},
	}
	o.Default()
	err := o.Validate()
	if err == nil {
		t.Fatal("no fault found")
	}
	got := []string{}
	for line := range strings.Lines(err.Error()) {
		path, _, _ := strings.Cut(line, ":")
		got = append(got, path)
	}
	want := []string{
		"Children[0].APIVersion", "Children[0].Kind", "Children[1].Adopt", "Children[1].Update", "Children[2]", "Children[3].APIVersion",
		"Labels[deployerkit.dev/x]", "Labels[ok]", "MinInterval", "Namespaces[1]", "Namespaces[2]", "Resync",
		"Tracking.ManagedByLabel", "Tracking.ManagedByLabel",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%v", diff, err)
	}
	if err := (&Options{}).Validate(); err == nil || err.Error() != "Children: at least one kind is required" {
		t.Errorf("Validate() = %v, want an error about Children", err)
	}
}
