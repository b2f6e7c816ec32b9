// SPDX-License-Identifier: Apache-2.0

package itempatch_test

import (
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func assertUnchanged(t *testing.T, before, after client.Object) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the input was changed (-before +after):\n%s", diff)
	}
}

// toUnstructured returns the raw body of the item as the API server would store it.
func toUnstructured(t *testing.T, di *lsv1alpha1.DeployItem, dropStatus bool) *unstructured.Unstructured {
	t.Helper()
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(di)
	if err != nil {
		t.Fatalf("convert: %v", err)
	}
	u := &unstructured.Unstructured{Object: body}
	u.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"))
	if dropStatus {
		delete(u.Object, "status")
	}
	return u
}

func TestDiffDeployItemStatus(t *testing.T) {
	phase := func(di *lsv1alpha1.DeployItem) { di.Status.Phase = "Init" }
	stored := func(di *lsv1alpha1.DeployItem) { di.Status.ObservedGeneration = 3 }
	deployer := func(version string) func(*lsv1alpha1.DeployItem) {
		return func(di *lsv1alpha1.DeployItem) {
			di.Status.Deployer = lsv1alpha1.DeployerInformation{Identity: "i", Name: "n", Version: version}
		}
	}
	condition := func(di *lsv1alpha1.DeployItem) {
		at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		di.Status.Conditions = []lsv1alpha1.Condition{{
			Type: "Hook", Status: "True", Reason: "R", Message: "m", LastTransitionTime: at, LastUpdateTime: at,
		}}
	}
	provider := func(di *lsv1alpha1.DeployItem) {
		di.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"P","objects":[1,2]}`)}
	}
	cases := map[string]struct {
		reason       string
		base, wanted *lsv1alpha1.DeployItem
		want         string
	}{
		"phase beside a provider status": {
			"what is the same is not sent",
			newItem(stored, provider), newItem(stored, provider, phase),
			`{"metadata":{"resourceVersion":"7"},"status":{"phase":"Init"}}`,
		},
		"no change beside a provider status": {"nothing differs", newItem(provider), newItem(provider), ``},
		"new item, phase changed": {
			"the first status must have an observedGeneration, and no half deployer",
			newItem(), newItem(phase),
			`{"metadata":{"resourceVersion":"7"},"status":{"observedGeneration":0,"phase":"Init"}}`,
		},
		"new item, condition of a hook added": {
			"any first write must create a valid status",
			newItem(), newItem(condition),
			`{"metadata":{"resourceVersion":"7"},"status":{"conditions":[{"lastTransitionTime":"2026-01-02T03:04:05Z","lastUpdateTime":"2026-01-02T03:04:05Z","message":"m","reason":"R","status":"True","type":"Hook"}],"observedGeneration":0}}`,
		},
		"new item, deployer set": {
			"the deployer is written whole",
			newItem(), newItem(deployer("")),
			`{"metadata":{"resourceVersion":"7"},"status":{"deployer":{"identity":"i","name":"n","version":""},"observedGeneration":0}}`,
		},
		"new item, no change": {"a zero status is no change", newItem(), newItem(), ""},
		"stored status": {
			"observedGeneration is there already",
			newItem(stored), newItem(stored, phase),
			`{"metadata":{"resourceVersion":"7"},"status":{"phase":"Init"}}`,
		},
		"only the generation changed": {
			"a plain change", newItem(), newItem(stored),
			`{"metadata":{"resourceVersion":"7"},"status":{"observedGeneration":3}}`,
		},
		"other deployer version": {
			"the deployer is written whole or not at all",
			newItem(stored, deployer("1")), newItem(stored, deployer("2")),
			`{"metadata":{"resourceVersion":"7"},"status":{"deployer":{"identity":"i","name":"n","version":"2"}}}`,
		},
		"deployer removed": {
			"an empty deployer is an absent one",
			newItem(stored, deployer("1")), newItem(stored),
			`{"metadata":{"resourceVersion":"7"},"status":{"deployer":null}}`,
		},
		"everything removed": {
			"observedGeneration stays as long as a status is stored",
			newItem(stored, phase, deployer("1")), newItem(),
			`{"metadata":{"resourceVersion":"7"},"status":{"deployer":null,"observedGeneration":0,"phase":null}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := [2]client.Object{tc.base.DeepCopy(), tc.wanted.DeepCopy()}
			expectJSON(t, tc.reason, tc.want, encodeStatus(t, mustDiff(t, tc.base, tc.wanted)))
			assertUnchanged(t, before[0], tc.base)
			assertUnchanged(t, before[1], tc.wanted)

			absent := cmp.Equal(tc.base.Status, lsv1alpha1.DeployItemStatus{})
			base, wanted := toUnstructured(t, tc.base, absent), toUnstructured(t, tc.wanted, false)
			expectJSON(t, "unstructured: "+tc.reason, tc.want, encodeStatus(t, mustDiff(t, base, wanted)))
		})
	}
}

func TestDiffDeployItemRawBody(t *testing.T) {
	base := toUnstructured(t, newItem(), true)
	wanted := base.DeepCopy()
	wanted.Object["status"] = map[string]any{"deployer": map[string]any{"name": "n"}}
	expectJSON(t, "a partial deployer and a missing observedGeneration are filled in",
		`{"metadata":{"resourceVersion":"7"},"status":{"deployer":{"identity":"","name":"n","version":""},"observedGeneration":0}}`,
		encodeStatus(t, mustDiff(t, base, wanted)))
}

func TestDiffComparesNumbersByValue(t *testing.T) {
	provider := func(raw string) *lsv1alpha1.DeployItem {
		return newItem(func(di *lsv1alpha1.DeployItem) {
			di.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(raw)}
		})
	}
	same := [][2]string{{`{"n":1}`, `{"n":1.0}`}, {`{"n":1e3}`, `{"n":1000}`}, {`{"n":[1]}`, `{"n": [1.0]}`}}
	for _, pair := range same {
		if changes := mustDiff(t, provider(pair[0]), provider(pair[1])); !changes.IsEmpty() {
			t.Errorf("Diff(%s, %s) = %v, want nothing", pair[0], pair[1], changes.Status)
		}
	}
	if changes := mustDiff(t, provider(`{"n":9007199254740993}`), provider(`{"n":9007199254740992}`)); changes.IsEmpty() {
		t.Error("two large integers that differ by one are taken for the same")
	}
}
