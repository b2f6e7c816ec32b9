// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/managed/resources"
)

// listSeeds returns configurations of all kinds, as JSON.
func listSeeds(f *testing.F) [][]byte {
	f.Helper()
	texts := []string{
		v1 + "manifests: [null]", v2 + "manifests: [{manifest: {kind: List, items: [{}]}}]", v2 + "manifests: [{policy: keep, manifest: " + configMap + "}]",
		v2 + "manifests: [{manifest: {apiVersion: v1, kind: Secret, metadata: {name: s, labels: {a: 1}}, stringData: {k: v}, data: {k: [dg==]}}}]",
		v2 + "manifests: [{manifest: " + configMap + ", patchAfterDeployment: {metadata: {labels: {a: [b]}}, data: {k: v}}, patchBeforeDelete: [x]}]",
		v2 + "manifests: [{manifest: {apiVersion: v1, kind: List, items: [" + configMap + ", " + configMap + "]}}, {policy: ignore, manifest: " + configMap + "}]",
		v2 + "readinessChecks: {custom: [{name: a, resourceSelector: [{apiVersion: v1, kind: Pod, name: x}], requirements: [{jsonPath: .status, operator: in, values: [{value: a}]}]}]}",
		v2 + "exports: {defaultTimeout: 1m, exports: [{key: a.b, jsonPath: .spec, fromResource: {apiVersion: v1, kind: Pod, name: x, namespace: y}}]}",
		v2 + "deletionGroups: [{predefinedResourceGroup: {type: crds}}, {customResourceGroup: {resources: [{apiVersion: v1, kind: Pod, names: [x]}]}}]",
		v2 + "deletionGroupsDuringUpdate: [{}]\ndeleteTimeout: -1s\ncontinuousReconcile: {every: 1ns}\nupdateStrategy: 'x\\ny'", v1 + "kubeconfig: eA==", v1 + "manifests: 7",
	}
	for _, name := range []string{"v1alpha1.yaml", "v1alpha2.yaml"} {
		body, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, string(body))
	}
	seeds := [][]byte{nil, []byte("\x00"), []byte(`{"apiVersion":"\u2028\n","kind":"` + strings.Repeat("x", 5000) + `"}`)}
	for _, text := range texts {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, raw)
	}
	return seeds
}

// FuzzDecode decodes arbitrary text. Decode returns either a configuration, or an error of one line with a path and a
// code. A configuration can be encoded and decoded without loss. Each of its objects has a name and appears once.
func FuzzDecode(f *testing.F) {
	for _, seed := range listSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := Decode(newItemFromRaw(raw), Options{})
		if _, bad := getSchedule(newItemFromRaw(raw)); bad != nil {
			t.Errorf("Schedule(...): %v", bad)
		}
		if err != nil {
			checkRefusal(t, err)
			return
		}
		expectRoundTrip(t, config)
		desired, err := config.ToDesired()
		if err != nil {
			t.Fatalf("Decode accepts what Desired refuses: %v", err)
		}
		seen := map[apply.Ref]bool{}
		for _, d := range desired {
			id := getVersionlessRef(d.Object)
			if id.Name == "" || id.Kind == "" || seen[id] || d.Policy == "" || d.Strategy == "" {
				t.Errorf("Desired(): %s, there already: %t, policy %q, strategy %q", id, seen[id], d.Policy, d.Strategy)
			}
			seen[id] = true
		}
	})
}

// checkRefusal requires that an error has one line, a path and a code.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	if diff := cmp.Diff([]lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}, contract.ErrorCodes(err)); diff != "" {
		t.Errorf("codes of %v: -want, +got:\n%s", err, diff)
	}
	message := contract.NewError(err, "", "", time.Time{}).Message
	if text := err.Error(); !strings.HasPrefix(message, "spec.config") || text != contract.OneLine(text, 2048) {
		t.Errorf("want one line that begins with the path, got %q", text)
	}
}

// canary stands for a secret. It must not appear in errors.
const canary = "CANARY-4711"

// secretFields contains the fields whose values may be secret.
var secretFields = map[string]bool{"data": true, "stringData": true, "kubeconfig": true, "patchAfterDeployment": true, "patchBeforeDelete": true}

// withCanary replaces all strings in confidential fields by the canary.
func withCanary(value any, hide bool) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = withCanary(member, hide || secretFields[key])
		}
	case []any:
		for i, member := range v {
			v[i] = withCanary(member, hide)
		}
	case string:
		if hide {
			return canary
		}
	}
	return value
}

// FuzzDecodeHidesSecrets writes the canary into all confidential fields of arbitrary configurations. The canary must
// not appear in errors and in the provider status. The patches of patchBeforeDelete are an exception: the provider
// status contains them.
func FuzzDecodeHidesSecrets(f *testing.F) {
	for _, seed := range listSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var body any
		if json.Unmarshal(raw, &body) != nil {
			return
		}
		raw, err := json.Marshal(withCanary(body, false))
		if err != nil {
			t.Fatal(err)
		}
		config, err := Decode(newItemFromRaw(raw), Options{})
		if err != nil {
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the canary shows: %v", err)
			}
			return
		}
		desired, err := config.ToDesired()
		if err != nil {
			t.Fatal(err)
		}
		inventory := apply.Inventory{}
		for _, d := range desired {
			ref := apply.ToRef(d.Object)
			inventory.Entries = append(inventory.Entries, apply.Entry{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Policy: d.Policy})
		}
		di := newItemFromRaw(raw)
		if err := statusFormat.Store(di, &resources.Status{Inventory: inventory}); err != nil {
			t.Fatalf("Store(...): %v", err)
		}
		if di.Status.ProviderStatus != nil && strings.Contains(string(di.Status.ProviderStatus.Raw), canary) {
			t.Errorf("the canary shows in %s", di.Status.ProviderStatus.Raw)
		}
	})
}
