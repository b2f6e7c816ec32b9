// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strconv"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

func TestSetCondition(t *testing.T) {
	t.Parallel()
	base := []lsv1alpha1.Condition{newCondition("A", "True", -9), newCondition("B", "True", -9)}
	keep := append([]lsv1alpha1.Condition(nil), base...)
	is := func(status lsv1alpha1.ConditionStatus, message string, since, updated int, c ...lsv1alpha1.ErrorCode) lsv1alpha1.Condition {
		return lsv1alpha1.Condition{Type: "B", Status: status, Reason: "R", Message: message, Codes: c, LastTransitionTime: metaAfterMinutes(since), LastUpdateTime: metaAfterMinutes(updated)}
	}
	for name, tc := range map[string]struct {
		status  lsv1alpha1.ConditionStatus
		message string
		codes   errorCodes
		want    lsv1alpha1.Condition
	}{
		"same content": {"True", "m", nil, is("True", "m", -9, -9)},
		"new message":  {"True", "n", nil, is("True", "n", -9, 0)},
		"new status":   {"False", "m", nil, is("False", "m", 0, 0)},
		"new code":     {"True", "m", errorCodes{"X"}, is("True", "m", -9, 0, "X")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := contract.SetCondition(base, "B", tc.status, "R", tc.message, epoch, tc.codes...)
			if diff := cmp.Diff([]lsv1alpha1.Condition{keep[0], tc.want}, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(keep, base); diff != "" {
				t.Errorf("input changed: %s", diff)
			}
		})
	}
}

func TestSetConditionAppends(t *testing.T) {
	t.Parallel()
	base := make([]lsv1alpha1.Condition, 1, 4)
	base[0] = newCondition("A", "True", -9)
	one := contract.SetCondition(base, "B", "True", "R", "m", epoch)
	two := contract.SetCondition(base, "C", "True", "R", "m", epoch)
	if one[1].Type != "B" || two[1].Type != "C" || len(base) != 1 {
		t.Errorf("appends share memory: %+v %+v", one, two)
	}
	if got := contract.SetCondition(nil, "B", "True", "R", "m", epoch); len(got) != 1 {
		t.Errorf("nil: %+v", got)
	}
	broken := []lsv1alpha1.Condition{{Type: "B", Status: "True", Reason: "R", Message: "m"}}
	if got := contract.SetCondition(broken, "B", "True", "R", "m", epoch); got[0].LastTransitionTime.IsZero() || got[0].LastUpdateTime.IsZero() {
		t.Errorf("missing times are repaired [C-11]: %+v", got)
	}
}

func TestRemoveAndGetCondition(t *testing.T) {
	t.Parallel()
	base := []lsv1alpha1.Condition{newCondition("A", "True", 0), newCondition("B", "True", 0), newCondition("A", "False", 0)}
	keep := append([]lsv1alpha1.Condition(nil), base...)
	if diff := cmp.Diff([]lsv1alpha1.Condition{keep[1]}, contract.RemoveCondition(base, "A")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := contract.RemoveCondition(base[:1], "A"); got != nil {
		t.Errorf("nothing left: %+v", got)
	}
	if diff := cmp.Diff(keep, contract.RemoveCondition(base, "C")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got := contract.GetCondition(base, "B")
	got.Message = "changed"
	if diff := cmp.Diff(keep, base); diff != "" || contract.GetCondition(base, "C") != nil {
		t.Errorf("GetCondition shares memory: %s", diff)
	}
}

// TestConditionTypes requires that AllConditionTypes returns every condition type that this package declares as a
// constant.
func TestConditionTypes(t *testing.T) {
	packages, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []lsv1alpha1.ConditionType
	for _, name := range packages {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type == nil || types.ExprString(spec.Type) != "lsv1alpha1.ConditionType" {
				return true
			}
			for _, v := range spec.Values {
				text, err := strconv.Unquote(types.ExprString(v))
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, lsv1alpha1.ConditionType(text))
			}
			return true
		})
	}
	t.Run("OwnConditions contains each condition type of the package [F53]", func(t *testing.T) {
		if diff := cmp.Diff(want, contract.AllConditionTypes()); diff != "" || len(want) == 0 {
			t.Errorf("-declared +listed\n%s", diff)
		}
	})
	t.Run("OwnConditions returns a new slice for each call [F53]", func(t *testing.T) {
		contract.AllConditionTypes()[0] = "changed"
		if diff := cmp.Diff(want, contract.AllConditionTypes()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestAllReasons requires that Reasons returns every constant of type Reason.
func TestAllReasons(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "evaluate.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var want []contract.Reason
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Type == nil || types.ExprString(spec.Type) != "Reason" {
			return true
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(types.ExprString(v))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, contract.Reason(text))
		}
		return true
	})
	t.Run("AllReasons returns each reason of the package [V1]", func(t *testing.T) {
		if diff := cmp.Diff(want, contract.AllReasons()); diff != "" || len(want) == 0 {
			t.Errorf("-declared +listed\n%s", diff)
		}
	})
}
