// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deployerkit/deployerkit/targets"
)

func newClusterTarget() *lsv1alpha1.Target {
	return &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden", Name: "cluster-1",
		Labels:      map[string]string{"env": "dev", "size": "5"},
		Annotations: map[string]string{"team": "blue"},
	}}
}

func newRequirement(key, operator string, values ...string) lsv1alpha1.Requirement {
	return lsv1alpha1.Requirement{Key: key, Operator: selection.Operator(operator), Values: values}
}

func byLabels(all ...lsv1alpha1.Requirement) lsv1alpha1.TargetSelector {
	return lsv1alpha1.TargetSelector{Labels: all}
}

func byName(namespace, name string) lsv1alpha1.TargetSelector {
	return lsv1alpha1.TargetSelector{Targets: []lsv1alpha1.ObjectReference{{Namespace: "x", Name: "y"}, {Namespace: namespace, Name: name}}}
}

func TestMatchesSelectors(t *testing.T) {
	yes, no := byLabels(newRequirement("env", "exists")), byLabels(newRequirement("env", "!"))
	annotated := lsv1alpha1.TargetSelector{Annotations: []lsv1alpha1.Requirement{newRequirement("team", "=", "blue")}}
	all := byName("garden", "cluster-1")
	all.Labels, all.Annotations = yes.Labels, annotated.Annotations
	partly := byName("garden", "cluster-1")
	partly.Labels, partly.Annotations = no.Labels, annotated.Annotations
	otherTeam := byName("", "cluster-1")
	otherTeam.Annotations = []lsv1alpha1.Requirement{newRequirement("team", "=", "red")}

	cases := map[string]struct {
		reason    string
		selectors []lsv1alpha1.TargetSelector
		want      bool
	}{
		"no selectors [L24] [C2]":                    {"responsible for every target", nil, true},
		"an empty selector [L24]":                    {"it has no part that could fail", []lsv1alpha1.TargetSelector{{}}, true},
		"one of two selectors [L24] [C2]":            {"selectors are alternatives", []lsv1alpha1.TargetSelector{no, yes}, true},
		"none of two selectors [L24] [C2]":           {"another environment", []lsv1alpha1.TargetSelector{no, no}, false},
		"all parts match [C2]":                       {"parts of one selector all count", []lsv1alpha1.TargetSelector{all}, true},
		"labels do not match [C2]":                   {"parts of one selector all count", []lsv1alpha1.TargetSelector{partly}, false},
		"annotations do not match [C2]":              {"parts of one selector all count", []lsv1alpha1.TargetSelector{otherTeam}, false},
		"name and namespace [C2]":                    {"one of the references is enough", []lsv1alpha1.TargetSelector{byName("garden", "cluster-1")}, true},
		"name without namespace [C2]":                {"the namespace counts only if set", []lsv1alpha1.TargetSelector{byName("", "cluster-1")}, true},
		"other namespace [C2]":                       {"the namespace counts if set", []lsv1alpha1.TargetSelector{byName("other", "cluster-1")}, false},
		"other name [C2]":                            {"the name always counts", []lsv1alpha1.TargetSelector{byName("garden", "cluster-2")}, false},
		"an annotation [C2]":                         {"annotations are looked at", []lsv1alpha1.TargetSelector{annotated}, true},
		"a label with the key of an annotation [C2]": {"labels and annotations are not mixed up", []lsv1alpha1.TargetSelector{byLabels(newRequirement("team", "exists"))}, false},
		"two requirements, one fails [C2]":           {"all requirements count", []lsv1alpha1.TargetSelector{byLabels(newRequirement("env", "exists"), newRequirement("env", "=", "prod"))}, false},
		"an invalid selector after a match":          {"Validate finds it", []lsv1alpha1.TargetSelector{yes, byLabels(newRequirement("env", "bad"))}, true},
	}
	for name, tc := range cases {
		t.Run(fmt.Sprintf("returns %t for %s", tc.want, name), func(t *testing.T) {
			target := newClusterTarget()
			got, err := targets.MatchesSelectors(target, tc.selectors)
			if err != nil || got != tc.want {
				t.Errorf("%s: Matches() = %t, %v, want %t", tc.reason, got, err, tc.want)
			}
			if diff := cmp.Diff(newClusterTarget(), target); diff != "" {
				t.Errorf("the target was changed:\n%s", diff)
			}
		})
	}
	t.Run("returns true without a Target [L24]", func(t *testing.T) {
		if got, err := targets.MatchesSelectors(nil, []lsv1alpha1.TargetSelector{no}); err != nil || !got {
			t.Errorf("Matches(nil) = %t, %v, want true", got, err)
		}
	})
	t.Run("compares a Target without labels and annotations [C2]", func(t *testing.T) {
		if got, err := targets.MatchesSelectors(&lsv1alpha1.Target{}, []lsv1alpha1.TargetSelector{no}); err != nil || !got {
			t.Errorf("Matches() = %t, %v, want true", got, err)
		}
	})
}

func TestSelectorOperators(t *testing.T) {
	cases := map[string]struct {
		match, differ lsv1alpha1.Requirement
	}{
		"in":     {newRequirement("env", "in", "a", "dev"), newRequirement("env", "in", "a", "b")},
		"notin":  {newRequirement("env", "notin", "a"), newRequirement("env", "notin", "a", "dev")},
		"=":      {newRequirement("env", "=", "dev"), newRequirement("env", "=", "a")},
		"==":     {newRequirement("env", "==", "dev"), newRequirement("nope", "==", "dev")},
		"!=":     {newRequirement("nope", "!=", "dev"), newRequirement("env", "!=", "dev")},
		"exists": {newRequirement("env", "exists"), newRequirement("nope", "exists")},
		"!":      {newRequirement("nope", "!"), newRequirement("env", "!")},
		"gt":     {newRequirement("size", "gt", "4"), newRequirement("size", "gt", "5")},
		"lt":     {newRequirement("size", "lt", "6"), newRequirement("env", "lt", "6")},
	}
	for operator, tc := range cases {
		t.Run("evaluates the operator "+operator+" [L24] [C2]", func(t *testing.T) {
			if got, err := targets.MatchesSelectors(newClusterTarget(), []lsv1alpha1.TargetSelector{byLabels(tc.match)}); err != nil || !got {
				t.Errorf("Matches(%v) = %t, %v, want true", tc.match, got, err)
			}
			if got, err := targets.MatchesSelectors(newClusterTarget(), []lsv1alpha1.TargetSelector{byLabels(tc.differ)}); err != nil || got {
				t.Errorf("Matches(%v) = %t, %v, want false", tc.differ, got, err)
			}
		})
	}
}

func TestInvalidRequirementsAreReported(t *testing.T) {
	cases := map[string]struct {
		bad  lsv1alpha1.Requirement
		path string
	}{
		"an unknown operator":      {newRequirement("env", "like", "x"), "operator"},
		"an empty operator":        {newRequirement("env", ""), "operator"},
		"an invalid key":           {newRequirement("a b", "exists"), "key"},
		"an empty key":             {newRequirement("", "exists"), "key"},
		"in, but without values":   {newRequirement("env", "in"), "values"},
		"= and two values":         {newRequirement("env", "=", "a", "b"), "values"},
		"exists and a value":       {newRequirement("env", "exists", "a"), "values"},
		"gt, but without a number": {newRequirement("env", "gt", "a"), "values[0]"},
		"an invalid value":         {newRequirement("env", "in", "a", "b c"), "values[1][env]"},
	}
	for name, tc := range cases {
		t.Run("refuses a requirement with "+name+" [L24] [C2]", func(t *testing.T) {
			good := newRequirement("env", "exists")
			for part, selector := range map[string]lsv1alpha1.TargetSelector{
				"labels":      byLabels(good, tc.bad),
				"annotations": {Annotations: []lsv1alpha1.Requirement{newRequirement("team", "exists"), tc.bad}},
			} {
				selectors := []lsv1alpha1.TargetSelector{selector}
				want := "targetSelectors[0]." + part + "[1]." + tc.path
				matches, err := targets.MatchesSelectors(newClusterTarget(), selectors)
				if matches {
					t.Error("an invalid selector matches")
				}
				for call, err := range map[string]error{"Matches": err, "Validate": targets.ValidateSelectors(selectors)} {
					if fault := (&field.Error{}); !errors.As(err, &fault) || fault.Field != want {
						t.Errorf("%s() = %v, want an error at %s", call, err, want)
					}
				}
			}
		})
	}
}

func TestValidateSelectors(t *testing.T) {
	good := []lsv1alpha1.TargetSelector{{}, byName("", "x"), byLabels(newRequirement("env", "in", "a"))}
	if err := targets.ValidateSelectors(good); err != nil {
		t.Errorf("Validate() = %v, want nil", err)
	}
	if err := targets.ValidateSelectors(nil); err != nil {
		t.Errorf("Validate(nil) = %v, want nil", err)
	}
	bad := []lsv1alpha1.TargetSelector{
		byName("ns", ""),
		byLabels(newRequirement("env", "like"), newRequirement("env", "in")),
		{Annotations: []lsv1alpha1.Requirement{newRequirement("", "in")}},
	}
	err := targets.ValidateSelectors(bad)
	if err == nil {
		t.Fatal("Validate() = nil, want all faults")
	}
	for _, path := range []string{
		"targetSelectors[0].targets[1].name", "targetSelectors[1].labels[0].operator", "targetSelectors[1].labels[1].values",
		"targetSelectors[2].annotations[0].key", "targetSelectors[2].annotations[0].values",
	} {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("Validate() = %v, want a fault at %s in it", err, path)
		}
	}
}
