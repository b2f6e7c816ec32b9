// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
)

const (
	status1 = `{"apiVersion":"chart.example.com/v1alpha1","kind":"ProviderStatus"`
	status2 = `{"apiVersion":"chart.example.com/v1","kind":"ProviderStatus"`

	managedA = `{"policy":"manage","resource":{"apiVersion":"v1","kind":"ConfigMap","name":"a","namespace":"ns"}}`
)

func newItemWithStatus(raw string) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	if raw != "" {
		di.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(raw)}
	}
	return di
}

// newEntry returns the entry of one ConfigMap.
func newEntry(name string, uid types.UID) apply.Entry {
	return apply.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name, UID: uid}
}

func TestDecodeStatus(t *testing.T) {
	kept := newEntry("b", "u")
	kept.Policy, kept.AnnotateBeforeDelete = apply.PolicyKeep, map[string]string{"a": "b"}
	kept.PatchBeforeDelete = map[string]any{"data": map[string]any{"x": int64(9007199254740993)}}
	adopted := newEntry("a", "")
	adopted.Hash, adopted.Adopted = "x", true
	for name, tc := range map[string]struct {
		raw     string
		want    []apply.Entry
		wantErr string
	}{
		"Nothing":          {},
		"Null":             {raw: `null`},
		"Empty":            {raw: status2 + `}`},
		"References":       {raw: status1 + `,"managedResources":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","namespace":"ns"}]}`, want: []apply.Entry{newEntry("a", "")}},
		"ListOfLandscaper": {raw: status2 + `,"managedResources":[` + managedA + `,{"policy":"keep","annotateBeforeDelete":{"a":"b"},"patchBeforeDelete":{"data":{"x":9007199254740993}},"resource":{"apiVersion":"v1","kind":"ConfigMap","name":"b","namespace":"ns","uid":"u"}}]}`, want: []apply.Entry{newEntry("a", ""), kept}},
		"OwnInventory":     {raw: status2 + `,"managedResources":[` + managedA + `],"inventory":{"entries":[{"v":"v1","k":"ConfigMap","ns":"ns","n":"c"}]}}`, want: []apply.Entry{newEntry("c", "")}},
		"Shared":           {raw: status2 + `,"managedResources":[` + managedA + `],"managedDigest":` + computeDigest([]apply.Entry{adopted}) + `,"inventory":{"entries":[{"h":"x","a":true}]}}`, want: []apply.Entry{adopted}},
		"ChangedList":      {raw: status2 + `,"managedResources":[` + managedA + `],"managedDigest":` + computeDigest([]apply.Entry{kept}) + `,"inventory":{"entries":[{"h":"x","a":true}]}}`, want: []apply.Entry{newEntry("a", "")}},
		"NoDigest":         {raw: status2 + `,"managedResources":[` + managedA + `],"inventory":{"entries":[{"h":"x","a":true}]}}`, want: []apply.Entry{newEntry("a", "")}},
		"OtherList":        {raw: status2 + `,"managedResources":[` + managedA + `],"inventory":{"entries":[{"h":"x","a":true},{"h":"y"}]}}`, want: []apply.Entry{newEntry("a", "")}},
		"NoList":           {raw: status2 + `,"inventory":{"entries":[{"h":"x"}]}}`},
		"NullInventory":    {raw: status2 + `,"inventory":null,"managedResources":[` + managedA + `]}`, want: []apply.Entry{newEntry("a", "")}},
		"OtherKind":        {raw: `{"apiVersion":"v1","kind":"ProviderStatus"}`, wantErr: "status.providerStatus: is v1"},
		"NoKind":           {raw: `{"managedResources":[]}`, wantErr: "status.providerStatus: is "},
		"NoObject":         {raw: `[1]`, wantErr: "status.providerStatus: "},
		"BrokenList":       {raw: status2 + `,"managedResources":7}`, wantErr: "status.providerStatus.managedResources: "},
		"BrokenOldList":    {raw: status1 + `,"managedResources":[7]}`, wantErr: "status.providerStatus.managedResources: "},
		"BrokenPatch":      {raw: status2 + `,"managedResources":[{"resource":{"name":"a"},"patchBeforeDelete":[1]}]}`, wantErr: "patchBeforeDelete of a: must be an object"},
		"BrokenInventory":  {raw: status2 + `,"inventory":7}`, wantErr: "status.providerStatus.inventory: "},
	} {
		t.Run(name+" [D11]", func(t *testing.T) {
			got, err := chartStatus.Decode(newItemWithStatus(tc.raw))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || len(contract.ErrorCodes(err)) != 1 {
					t.Errorf("Decode(...): want an error with %q, got %v", tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Inventory.Entries); diff != "" {
				t.Errorf("Inventory: -want, +got:\n%s", diff)
			}
			if got.Fields == nil {
				t.Error("Fields: a deployer cannot add its own")
			}
		})
	}
}

// isEqualJSON reports whether two JSON texts have the same meaning.
func isEqualJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func TestStoreStatus(t *testing.T) {
	t.Run("the stored status can be read by the deployers of Landscaper [D11]", func(t *testing.T) {
		di := newItemWithStatus("")
		if err := chartStatus.Store(di, &Status{Inventory: apply.Inventory{Entries: []apply.Entry{newEntry("a", "u")}}}); err != nil {
			t.Fatal(err)
		}
		var theirs manifestv1alpha2.ProviderStatus
		if err := json.Unmarshal(di.Status.ProviderStatus.Raw, &theirs); err != nil {
			t.Fatal(err)
		}
		if len(theirs.ManagedResources) != 1 || theirs.ManagedResources[0].Resource.Name != "a" || theirs.GroupVersionKind() != chartStatus.Kind {
			t.Errorf("their reading: %+v", theirs)
		}
		if err := contract.CheckProviderStatus(di.Status.ProviderStatus); err != nil {
			t.Error(err)
		}
	})
	t.Run("the stored status keeps fields of the deployer and of newer versions [D17]", func(t *testing.T) {
		di := newItemWithStatus(status1 + `,"future":{"a":1},"inventory":{"entries":[{"v":"v1","k":"ConfigMap","ns":"ns","n":"a"}]}}`)
		status, err := chartStatus.Decode(di)
		if err != nil {
			t.Fatal(err)
		}
		status.Fields["release"] = json.RawMessage(`{"name":"web"}`)
		if err := chartStatus.Store(di, status); err != nil {
			t.Fatal(err)
		}
		want := status2 + `,"future":{"a":1},"release":{"name":"web"},"inventory":{"entries":[{}]},"managedDigest":` + computeDigest([]apply.Entry{newEntry("a", "")}) + `,"managedResources":[` + managedA + `]}`
		if !isEqualJSON([]byte(want), di.Status.ProviderStatus.Raw) {
			t.Errorf("Store(...): want %s, got %s", want, di.Status.ProviderStatus.Raw)
		}
	})
	t.Run("the status stores each field once, and can be decoded again [D11]", func(t *testing.T) {
		kept, own := newEntry("a", "u"), newEntry("b", "v")
		kept.Policy, kept.AnnotateBeforeDelete = apply.PolicyKeep, map[string]string{"a": "b"}
		kept.PatchBeforeDelete = map[string]any{"data": map[string]any{"x": int64(9007199254740993)}}
		own.Hash, own.Fingerprint, own.Adopted = "hash", "key", true
		protected := newEntry("c", "") // Landscaper's deployer must not delete it, so it is not in the list
		protected.Policy = apply.PolicyFallback
		for size, entries := range map[int][]apply.Entry{500: {kept, own}, 700: {kept, own, protected}} {
			di := newItemWithStatus("")
			if err := chartStatus.Store(di, &Status{Inventory: apply.Inventory{Entries: entries}}); err != nil {
				t.Fatal(err)
			}
			if got := len(di.Status.ProviderStatus.Raw); got > size {
				t.Errorf("Store(...): %d bytes, want at most %d: %s", got, size, di.Status.ProviderStatus.Raw)
			}
			got, err := chartStatus.Decode(di)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(entries, got.Inventory.Entries); diff != "" {
				t.Errorf("Decode(...): -want, +got:\n%s", diff)
			}
		}
	})
	t.Run("the status omits a list that is too large, but never the inventory [D11]", func(t *testing.T) {
		status := &Status{}
		for i := range 2000 {
			status.Inventory.Entries = append(status.Inventory.Entries, newEntry(fmt.Sprintf("name-%d", i), "u"))
		}
		di := newItemWithStatus("")
		if err := chartStatus.Store(di, status); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(di.Status.ProviderStatus.Raw), fieldManaged) {
			t.Error("Store(...): the list is too large")
		}
		if got, err := chartStatus.Decode(di); err != nil || len(got.Inventory.Entries) != 2000 {
			t.Errorf("Decode(...): %d entries, %v", len(got.Inventory.Entries), err)
		}
	})
	t.Run("the status rejects an inventory that exceeds the size of an item [D11]", func(t *testing.T) {
		large := json.RawMessage(`"` + strings.Repeat("x", contract.MaxProviderStatus) + `"`)
		err := chartStatus.Store(newItemWithStatus(""), &Status{Fields: map[string]json.RawMessage{"x": large}})
		if err == nil || !cmp.Equal(contract.ErrorCodes(err), []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}) {
			t.Errorf("Store(...): got %v", err)
		}
	})
}

func FuzzDecodeStatus(f *testing.F) {
	f.Add([]byte(status1 + `,"managedResources":[{"apiVersion":"v1","kind":"ConfigMap","name":"a"}]}`))
	f.Add([]byte(status2 + `,"managedResources":[{"policy":"keep","resource":{"kind":"A"},"patchBeforeDelete":{"a":1}}],"x":[1]}`))
	f.Add([]byte(status2 + `,"inventory":{"entries":[{"v":"v1","k":"ConfigMap","n":"a"}]}}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		first, err := chartStatus.Decode(newItemWithStatus(string(raw)))
		if err != nil {
			return
		}
		di := newItemWithStatus("")
		if chartStatus.Store(di, first) != nil {
			return // bad metadata
		}
		second, err := chartStatus.Decode(di)
		if err != nil {
			t.Fatalf("Decode(Store(status)): %v", err)
		}
		one, oneErr := json.Marshal(first.Inventory)
		two, twoErr := json.Marshal(second.Inventory)
		if oneErr != nil || twoErr != nil || !isEqualJSON(one, two) || len(first.Fields) != len(second.Fields) {
			t.Errorf("Decode(Store(status)): want %+v, got %+v", first, second)
		}
	})
}

func TestToManagedResources(t *testing.T) {
	cases := map[string]struct {
		reason string
		entry  apply.Entry
		want   managedresource.ManagedResourceStatusList
	}{
		"ForeignImmutable [H-18]": {
			reason: "Landscaper's deployer would delete an object of another item",
			entry:  apply.Entry{Kind: "ConfigMap", Name: "a", Policy: apply.PolicyImmutable},
		},
		"ForeignFallback": {
			reason: "an object that the policy leaves alone is not managed",
			entry:  apply.Entry{Kind: "ConfigMap", Name: "a", Policy: apply.PolicyFallback},
		},
		"NotYetWritten [D11]": {
			reason: "it may exist",
			entry:  apply.Entry{Kind: "ConfigMap", Name: "a"},
			want:   managedresource.ManagedResourceStatusList{{Policy: "manage", Resource: corev1.ObjectReference{Kind: "ConfigMap", Name: "a"}}},
		},
		"BeforeDelete": {
			reason: "the patch before the deletion is stored with the object",
			entry: apply.Entry{
				Kind: "ConfigMap", Name: "a", UID: "1", Policy: apply.PolicyImmutable,
				AnnotateBeforeDelete: map[string]string{"a": "b"}, PatchBeforeDelete: map[string]any{"data": map[string]any{"a": "b"}},
			},
			want: managedresource.ManagedResourceStatusList{{
				Policy: "immutable", Resource: corev1.ObjectReference{Kind: "ConfigMap", Name: "a", UID: "1"},
				AnnotateBeforeDelete: map[string]string{"a": "b"}, PatchBeforeDelete: &runtime.RawExtension{Raw: []byte(`{"data":{"a":"b"}}`)},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := toManagedResources(apply.Inventory{Entries: []apply.Entry{tc.entry}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
