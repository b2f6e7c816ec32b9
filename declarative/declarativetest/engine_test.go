// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/declarative"
)

const (
	full   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","annotations":{"note":"a"}},"data":{"a":"1","b":"2"}}`
	less   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"}}`
	custom = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"sizes":[1,2]}}`
)

// TestPlanFollowsRulesOfDeployer checks that a plan follows the rules of the real deployer, such as the rules for field
// ownership.
func TestPlanFollowsRulesOfDeployer(t *testing.T) {
	for name, tc := range map[string]struct {
		update declarative.UpdateStrategy
		first  any // the child that the handler returned in an earlier run, or nil if there was no earlier run
		wants  any
		before []any // further observed children
		want   []string
	}{
		"a field that is no longer returned is removed [F31]": {
			declarative.StrategyApply, full, less, nil,
			[]string{"change ConfigMap shop/c .data.b .metadata.annotations.note"},
		},
		"a field of another manager is kept [F31]": {declarative.StrategyApply, nil, less, []any{full}, nil},
		"Replace removes fields of other managers [F31]": {
			declarative.StrategyReplace, nil, less,
			[]any{full},
			[]string{"change ConfigMap shop/c .data.b .metadata.annotations.note"},
		},
		"Replace removes a field that is no longer returned [F31]": {
			declarative.StrategyReplace, full, less, nil,
			[]string{"change ConfigMap shop/c .data.b .metadata.annotations.note"},
		},
		"Replace by the same object changes nothing [F31]": {declarative.StrategyReplace, full, full, nil, nil},
		"Recreate replaces a child if a field is no longer returned [F31]": {
			declarative.StrategyRecreate, full, less, nil,
			[]string{"recreate ConfigMap shop/c .data.b .metadata.annotations.note"},
		},
		"OnDelete does not change a child [F31]": {declarative.StrategyOnDelete, full, less, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			options := declarative.Options{Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap", Update: tc.update}}}
			item, observed := NewItem(t, "shop", "web", map[string]any{}), tc.before
			if tc.first != nil {
				plan, err := Run(t.Context(), newStaticHandler(tc.first), options, item)
				if err != nil {
					t.Fatal(err)
				}
				observed = plan.Observed
			}
			plan, err := Run(t.Context(), newStaticHandler(tc.wants), options, item, observed...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, plan.ListSteps()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestProviderStatusWithNull(t *testing.T) {
	for _, status := range []string{`null`, `{"deployerkit":null}`, `{"deployerkit":{"inventory":null}}`} {
		item := NewItem(t, "shop", "web", map[string]any{})
		item.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(status)}
		plan, err := Run(t.Context(), newStaticHandler(full), newOptions(), item)
		if err != nil {
			t.Fatalf("%s: %v", status, err)
		}
		if diff := cmp.Diff([]string{"create ConfigMap shop/c"}, plan.ListSteps()); diff != "" {
			t.Errorf("[F31] %s: %s", status, diff)
		}
	}
}

func TestCustomKindsArePlanned(t *testing.T) {
	options := declarative.Options{Children: []declarative.ChildKind{
		{APIVersion: "example.com/v1", Kind: "Thing"}, {APIVersion: "example.com/v1", Kind: "Other"},
	}}
	other := `{"apiVersion":"example.com/v1","kind":"Other","metadata":{"name":"t"},"spec":{"level":"high"}}`
	item := NewItem(t, "shop", "web", map[string]any{})
	plan, err := Run(t.Context(), newStaticHandler(custom, other), options, item)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create Other.example.com shop/t", "create Thing.example.com shop/t"}, plan.ListSteps()); diff != "" {
		t.Errorf("[F31] %s", diff)
	}
	plan, err = Run(t.Context(), newStaticHandler(other), options, item, plan.Observed...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"delete Thing.example.com shop/t"}, plan.ListSteps()); diff != "" {
		t.Errorf("[F31] %s", diff)
	}
}

func TestUnknownFieldOfKind(t *testing.T) {
	wrong := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"dada":{"a":"1"}}`
	if plan, err := Run(t.Context(), newStaticHandler(wrong), newOptions(), NewItem(t, "shop", "web", map[string]any{})); err == nil {
		t.Errorf("[F31] got %+v, want the error of an API server", plan)
	}
}
