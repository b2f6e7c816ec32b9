// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply"
)

// storeStatus returns the provider status after a run that begins with the provider status before and sets the status
// and the inventory.
func storeStatus(t *testing.T, before string, status any, inventory apply.Inventory) (map[string]any, error) {
	t.Helper()
	item := newShopItem()
	if before != "" {
		item.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(before)}
	}
	s, err := decodeStatus(item.Status.ProviderStatus)
	if err != nil {
		return nil, err
	}
	s.inventory = inventory
	if err := s.set(status, item.Generation); err != nil {
		return nil, err
	}
	if err := s.store(item); err != nil {
		return nil, err
	}
	if item.Status.ProviderStatus == nil {
		return nil, nil
	}
	out := map[string]any{}
	if err := json.Unmarshal(item.Status.ProviderStatus.Raw, &out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

func TestStatus(t *testing.T) {
	type typed struct {
		Ready bool `json:"ready"`
	}
	const ours, kind = "declarative.deployerkit.dev/v1alpha1", "ProviderStatus"
	one := apply.Inventory{Entries: []apply.Entry{{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "p"}}}
	inventory := object{"entries": []any{object{"v": "v1", "k": "Pod", "ns": "shop", "n": "p"}}}
	for name, tc := range map[string]struct {
		before    string
		status    any
		inventory apply.Inventory
		want      map[string]any
	}{
		"a typed status [R7, R45]":                                {"", typed{true}, apply.Inventory{}, object{"apiVersion": ours, "kind": kind, "observedGeneration": 3.0, "ready": true}},
		"a status as a map [R45]":                                 {"", object{"a": 1}, one, object{"apiVersion": ours, "kind": kind, "observedGeneration": 3.0, "a": 1.0, "deployerkit": object{"inventory": inventory}}},
		"a status in JSON [R45]":                                  {"", json.RawMessage(`{"a":1}`), apply.Inventory{}, object{"apiVersion": ours, "kind": kind, "observedGeneration": 3.0, "a": 1.0}},
		"the observedGeneration of the handler is replaced [R10]": {"", object{"observedGeneration": 77}, apply.Inventory{}, object{"apiVersion": ours, "kind": kind, "observedGeneration": 3.0}},
		"the kind of the handler is kept [R12]":                   {"", object{"apiVersion": "my/v1", "kind": "State"}, apply.Inventory{}, object{"apiVersion": "my/v1", "kind": "State", "observedGeneration": 3.0}},
		"an empty kind is replaced [R12]":                         {"", object{"apiVersion": "", "kind": nil}, apply.Inventory{}, object{"apiVersion": ours, "kind": kind, "observedGeneration": 3.0}},
		"nil without an inventory [R11]":                          {"", nil, apply.Inventory{}, nil},
		"a nil pointer [R11]":                                     {"", (*typed)(nil), apply.Inventory{}, nil},
		"nil with an inventory sets no observedGeneration [R11]":  {"", nil, one, object{"apiVersion": ours, "kind": kind, "deployerkit": object{"inventory": inventory}}},
		"nil keeps the earlier status [R11]":                      {`{"apiVersion":"my/v1","kind":"S","observedGeneration":1,"a":1}`, nil, one, object{"apiVersion": "my/v1", "kind": "S", "observedGeneration": 1.0, "a": 1.0, "deployerkit": object{"inventory": inventory}}},
		"a new status replaces the earlier status":                {`{"apiVersion":"my/v1","kind":"S","observedGeneration":1,"a":1}`, typed{}, apply.Inventory{}, object{"apiVersion": ours, "kind": kind, "observedGeneration": 3.0, "ready": false}},
		"fields of a newer version of the library are kept":       {`{"apiVersion":"my/v1","kind":"S","deployerkit":{"later":{"x":1}}}`, typed{}, one, object{"apiVersion": ours, "kind": kind, "observedGeneration": 3.0, "ready": false, "deployerkit": object{"later": object{"x": 1.0}, "inventory": inventory}}},
		"an empty inventory is removed":                           {`{"apiVersion":"my/v1","kind":"S","deployerkit":{"inventory":{"entries":[{"v":"v1","k":"Pod","n":"p"}]}}}`, typed{}, apply.Inventory{}, object{"apiVersion": ours, "kind": kind, "observedGeneration": 3.0, "ready": false}},
		"a status may contain an error [R9, R24]": {
			"", object{"error": "replicas must be odd"}, apply.Inventory{}, object{"apiVersion": ours, "kind": kind, "observedGeneration": 3.0, "error": "replicas must be odd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := storeStatus(t, tc.before, tc.status, tc.inventory)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestStatusErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		before string
		status any
		want   string
	}{
		"a status that is a string [R12]":                      {"", "ready", "the handler's status of type string is not a JSON object"},
		"a status that is a list [R12]":                        {"", []int{1}, "the handler's status of type []int is not a JSON object"},
		"a status that is a number [R12]":                      {"", json.RawMessage("7"), "the handler's status of type json.RawMessage is not a JSON object"},
		"a status that cannot be encoded [R45]":                {"", func() {}, "the handler's status of type func() cannot be encoded"},
		"a status with a reserved field":                       {"", object{"deployerkit": 1}, "status.providerStatus.deployerkit: is reserved for the library"},
		"a status that is too large [R12]":                     {"", object{"a": strings.Repeat("x", 1<<20)}, "at most 1048576 are allowed"},
		"a status with an invalid apiVersion [R12]":            {"", object{"apiVersion": "a/b/c", "kind": "K"}, "has an invalid apiVersion"},
		"a status with invalid metadata [R12]":                 {"", object{"metadata": "x"}, "has invalid metadata"},
		"a stored status that is not an object":                {"[]", nil, "status.providerStatus: is not an object"},
		"a stored status with an invalid inventory":            {`{"deployerkit":{"inventory":7}}`, nil, "status.providerStatus.deployerkit.inventory"},
		"a stored status with an invalid field of the library": {`{"deployerkit":7}`, nil, "status.providerStatus.deployerkit: is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := storeStatus(t, tc.before, tc.status, apply.Inventory{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestEmptyInventory(t *testing.T) {
	for name, want := range map[string]apply.Inventory{"with the mark [F37]": {Empty: true}, "without the mark [F37]": {}} {
		t.Run(name, func(t *testing.T) {
			item := newShopItem()
			if err := (&providerStatus{inventory: want}).store(item); err != nil {
				t.Fatal(err)
			}
			got, err := decodeStatus(item.Status.ProviderStatus)
			if err != nil || got.inventory.Empty != want.Empty {
				t.Errorf("decodeStatus(...) = %+v, %v, want Empty %t", got, err, want.Empty)
			}
		})
	}
}

func TestStatusRoundTrip(t *testing.T) {
	item := newShopItem()
	s := &providerStatus{inventory: apply.Inventory{Entries: []apply.Entry{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u"}}}}
	if err := s.store(item); err != nil {
		t.Fatal(err)
	}
	req, err := NewRequest(item, nil)
	if err != nil {
		t.Fatal(err)
	}
	if req.Status != nil {
		t.Errorf("[R11] a status that the handler never set: %s", req.Status)
	}
	if err := s.set(object{"count": 7}, 3); err != nil {
		t.Fatal(err)
	}
	if err := s.store(item); err != nil {
		t.Fatal(err)
	}
	got, err := decodeStatus(item.Status.ProviderStatus)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.inventory, got.inventory); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if req, err = NewRequest(item, nil); err != nil {
		t.Fatal(err)
	}
	last, err := LastStatus[struct{ Count, ObservedGeneration int }](req)
	if err != nil || last.Count != 7 || last.ObservedGeneration != 3 {
		t.Errorf("LastStatus(...) = %+v, %v, want count 7 and observedGeneration 3", last, err)
	}
	before := item.Status.ProviderStatus
	if err := got.store(item); err != nil || item.Status.ProviderStatus != before {
		t.Errorf("[Rx1] the same status is another value: %v", err)
	}
}
