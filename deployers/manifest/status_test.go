// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

const (
	status1 = `{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderStatus"`
	status2 = `{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha2","kind":"ProviderStatus"`
)

func withStatus(raw string) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	if raw != "" {
		di.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(raw)}
	}
	return di
}

// managed returns one managed ConfigMap.
func managed(name string) managedresource.ManagedResourceStatus {
	return managedresource.ManagedResourceStatus{
		Policy:   managedresource.ManagePolicy,
		Resource: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name},
	}
}

func TestDecodeStatus(t *testing.T) {
	kept := managed("b")
	kept.Policy, kept.Resource.UID = managedresource.KeepPolicy, "u"
	kept.AnnotateBeforeDelete = map[string]string{"a": "b"}
	kept.PatchBeforeDelete = &runtime.RawExtension{Raw: []byte(`{"data":{"x":"y"}}`)}
	for name, tc := range map[string]struct {
		raw           string
		managed       managedresource.ManagedResourceStatusList
		inventory     string
		fromOther     bool
		wantErrorWith string
	}{
		"Nothing":       {},
		"Null":          {raw: `null`, wantErrorWith: ""},
		"Empty":         {raw: status2 + `}`},
		"v1alpha1":      {raw: status1 + `,"managedResources":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","namespace":"ns"}]}`, managed: managedresource.ManagedResourceStatusList{managed("a")}, fromOther: true},
		"v1alpha2":      {raw: status2 + `,"managedResources":[{"policy":"manage","resource":{"apiVersion":"v1","kind":"ConfigMap","name":"a","namespace":"ns"}},{"policy":"keep","annotateBeforeDelete":{"a":"b"},"patchBeforeDelete":{"data":{"x":"y"}},"resource":{"apiVersion":"v1","kind":"ConfigMap","name":"b","namespace":"ns","uid":"u"}}]}`, managed: managedresource.ManagedResourceStatusList{managed("a"), kept}, fromOther: true},
		"Ours":          {raw: status2 + `,"managedResources":[{"policy":"manage","resource":{"apiVersion":"v1","kind":"ConfigMap","name":"a","namespace":"ns"}}],"inventory":{"entries":[1]}}`, managed: managedresource.ManagedResourceStatusList{managed("a")}, inventory: `{"entries":[1]}`},
		"NullInventory": {raw: status2 + `,"inventory":null}`},
		"OtherKind":     {raw: `{"apiVersion":"v1","kind":"ProviderStatus"}`, wantErrorWith: "status.providerStatus: is v1"},
		"NoKind":        {raw: `{"managedResources":[]}`, wantErrorWith: "status.providerStatus: is "},
		"NoObject":      {raw: `[1]`, wantErrorWith: "status.providerStatus: "},
		"BrokenList":    {raw: status2 + `,"managedResources":7}`, wantErrorWith: "status.providerStatus.managedResources: "},
		"BrokenOldList": {raw: status1 + `,"managedResources":[7]}`, wantErrorWith: "status.providerStatus.managedResources: "},
	} {
		t.Run(name+" [D11]", func(t *testing.T) {
			got, err := DecodeStatus(withStatus(tc.raw))
			if tc.wantErrorWith != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErrorWith) || len(contract.Codes(err)) != 1 {
					t.Errorf("DecodeStatus(...): want an error with %q, got %v", tc.wantErrorWith, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.managed, got.ManagedResources); diff != "" {
				t.Errorf("ManagedResources: -want, +got:\n%s", diff)
			}
			if string(got.Inventory) != tc.inventory || got.FromLandscaper() != tc.fromOther {
				t.Errorf("DecodeStatus(...): inventory %s, from Landscaper %v", got.Inventory, got.FromLandscaper())
			}
		})
	}
}

func TestSetStatus(t *testing.T) {
	t.Run("is readable for Landscaper's manifest deployer [D11]", func(t *testing.T) {
		di := withStatus("")
		if err := SetStatus(di, &Status{ManagedResources: managedresource.ManagedResourceStatusList{managed("a")}, Inventory: json.RawMessage(`{"entries":[]}`)}); err != nil {
			t.Fatal(err)
		}
		var theirs manifestv1alpha2.ProviderStatus
		if err := json.Unmarshal(di.Status.ProviderStatus.Raw, &theirs); err != nil {
			t.Fatal(err)
		}
		if len(theirs.ManagedResources) != 1 || theirs.ManagedResources[0].Resource.Name != "a" || theirs.GroupVersionKind() != statusV1alpha2 {
			t.Errorf("their reading: %+v", theirs)
		}
		if err := contract.CheckProviderStatus(di.Status.ProviderStatus); err != nil {
			t.Error(err)
		}
	})
	t.Run("keeps what a newer version wrote", func(t *testing.T) {
		di := withStatus(status2 + `,"future":{"a":1},"inventory":{"entries":[1]}}`)
		status, err := DecodeStatus(di)
		if err != nil {
			t.Fatal(err)
		}
		status.Inventory = json.RawMessage(`{"entries":[2]}`)
		if err := SetStatus(di, status); err != nil {
			t.Fatal(err)
		}
		if want := status2 + `,"future":{"a":1},"inventory":{"entries":[2]}}`; !sameJSON([]byte(want), di.Status.ProviderStatus.Raw) {
			t.Errorf("SetStatus(...): want %s, got %s", want, di.Status.ProviderStatus.Raw)
		}
	})
	t.Run("leaves out a large list of others, never the inventory [D11]", func(t *testing.T) {
		status := &Status{Inventory: json.RawMessage(`{"entries":[1]}`)}
		for i := range 2000 {
			status.ManagedResources = append(status.ManagedResources, managed(fmt.Sprintf("name-%d", i)))
		}
		di := withStatus("")
		if err := SetStatus(di, status); err != nil {
			t.Fatal(err)
		}
		if want := status2 + `,"inventory":{"entries":[1]}}`; !sameJSON([]byte(want), di.Status.ProviderStatus.Raw) {
			t.Errorf("SetStatus(...): got %.200s", di.Status.ProviderStatus.Raw)
		}
		status.Inventory = nil // without it, only this list says what is managed, so it stays whole
		if err := SetStatus(di, status); err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeStatus(di); err != nil || len(got.ManagedResources) != 2000 {
			t.Errorf("DecodeStatus(...): %d managed resources, %v", len(got.ManagedResources), err)
		}
	})
	t.Run("refuses what no item can hold [D11]", func(t *testing.T) {
		inventory := json.RawMessage(`"` + strings.Repeat("x", contract.MaxProviderStatus) + `"`)
		err := SetStatus(withStatus(""), &Status{Inventory: inventory})
		if err == nil || !cmp.Equal(contract.Codes(err), []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}) {
			t.Errorf("SetStatus(...): got %v", err)
		}
	})
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte(status1 + `,"managedResources":[{"apiVersion":"v1","kind":"ConfigMap","name":"a"}]}`))
	f.Add([]byte(status2 + `,"managedResources":[{"policy":"keep","resource":{"kind":"A"}}],"inventory":{},"x":[1]}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		first, err := DecodeStatus(withStatus(string(raw)))
		if err != nil {
			return
		}
		di := withStatus("")
		if SetStatus(di, first) != nil {
			return // bad metadata
		}
		second, err := DecodeStatus(di)
		if err != nil {
			t.Fatalf("DecodeStatus(SetStatus(status)): %v", err)
		}
		if len(first.ManagedResources) != len(second.ManagedResources) || !sameJSON(first.Inventory, second.Inventory) || len(first.more) != len(second.more) {
			t.Errorf("DecodeStatus(SetStatus(status)): want %+v, got %+v", first, second)
		}
	})
}
