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

func assertUntouched(t *testing.T, before, after client.Object) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the input was changed (-before +after):\n%s", diff)
	}
}

// asUnstructured returns the raw body of the item as the API server would store it.
func asUnstructured(t *testing.T, di *lsv1alpha1.DeployItem, dropStatus bool) *unstructured.Unstructured {
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
			item(stored, provider), item(stored, provider, phase),
			`{"metadata":{"resourceVersion":"7"},"status":{"phase":"Init"}}`,
		},
		"no change beside a provider status": {"nothing differs", item(provider), item(provider), ``},
		"new item, phase changed": {
			"the first status must have an observedGeneration, and no half deployer",
			item(), item(phase),
			`{"metadata":{"resourceVersion":"7"},"status":{"observedGeneration":0,"phase":"Init"}}`,
		},
		"new item, condition of a hook added": {
			"any first write must create a valid status",
			item(), item(condition),
			`{"metadata":{"resourceVersion":"7"},"status":{"conditions":[{"lastTransitionTime":"2026-01-02T03:04:05Z","lastUpdateTime":"2026-01-02T03:04:05Z","message":"m","reason":"R","status":"True","type":"Hook"}],"observedGeneration":0}}`,
		},
		"new item, deployer set": {
			"the deployer is written whole",
			item(), item(deployer("")),
			`{"metadata":{"resourceVersion":"7"},"status":{"deployer":{"identity":"i","name":"n","version":""},"observedGeneration":0}}`,
		},
		"new item, no change": {"a zero status is no change", item(), item(), ""},
		"stored status": {
			"observedGeneration is there already",
			item(stored), item(stored, phase),
			`{"metadata":{"resourceVersion":"7"},"status":{"phase":"Init"}}`,
		},
		"only the generation changed": {
			"a plain change", item(), item(stored),
			`{"metadata":{"resourceVersion":"7"},"status":{"observedGeneration":3}}`,
		},
		"other deployer version": {
			"the deployer is written whole or not at all",
			item(stored, deployer("1")), item(stored, deployer("2")),
			`{"metadata":{"resourceVersion":"7"},"status":{"deployer":{"identity":"i","name":"n","version":"2"}}}`,
		},
		"deployer removed": {
			"an empty deployer is an absent one",
			item(stored, deployer("1")), item(stored),
			`{"metadata":{"resourceVersion":"7"},"status":{"deployer":null}}`,
		},
		"everything removed": {
			"observedGeneration stays as long as a status is stored",
			item(stored, phase, deployer("1")), item(),
			`{"metadata":{"resourceVersion":"7"},"status":{"deployer":null,"observedGeneration":0,"phase":null}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := [2]client.Object{tc.base.DeepCopy(), tc.wanted.DeepCopy()}
			wantJSON(t, tc.reason, tc.want, statusJSON(t, mustDiff(t, tc.base, tc.wanted)))
			assertUntouched(t, before[0], tc.base)
			assertUntouched(t, before[1], tc.wanted)

			absent := cmp.Equal(tc.base.Status, lsv1alpha1.DeployItemStatus{})
			base, wanted := asUnstructured(t, tc.base, absent), asUnstructured(t, tc.wanted, false)
			wantJSON(t, "unstructured: "+tc.reason, tc.want, statusJSON(t, mustDiff(t, base, wanted)))
		})
	}
}

func TestDiffDeployItemRawBody(t *testing.T) {
	base := asUnstructured(t, item(), true)
	wanted := base.DeepCopy()
	wanted.Object["status"] = map[string]any{"deployer": map[string]any{"name": "n"}}
	wantJSON(t, "a partial deployer and a missing observedGeneration are filled in",
		`{"metadata":{"resourceVersion":"7"},"status":{"deployer":{"identity":"","name":"n","version":""},"observedGeneration":0}}`,
		statusJSON(t, mustDiff(t, base, wanted)))
}

func TestDiffComparesNumbersByValue(t *testing.T) {
	provider := func(raw string) *lsv1alpha1.DeployItem {
		return item(func(di *lsv1alpha1.DeployItem) {
			di.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(raw)}
		})
	}
	same := [][2]string{{`{"n":1}`, `{"n":1.0}`}, {`{"n":1e3}`, `{"n":1000}`}, {`{"n":[1]}`, `{"n": [1.0]}`}}
	for _, pair := range same {
		if changes := mustDiff(t, provider(pair[0]), provider(pair[1])); !changes.Empty() {
			t.Errorf("Diff(%s, %s) = %v, want nothing", pair[0], pair[1], changes.Status)
		}
	}
	if changes := mustDiff(t, provider(`{"n":9007199254740993}`), provider(`{"n":9007199254740992}`)); changes.Empty() {
		t.Error("two large integers that differ by one are taken for the same")
	}
}
