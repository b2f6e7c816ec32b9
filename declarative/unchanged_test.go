// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
)

func TestMarkUnchanged(t *testing.T) {
	childAt := func(version string) Children {
		return Children{NewChild(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": version},
		}})}
	}
	for name, tc := range map[string]struct {
		strategy apply.Strategy
		policy   apply.Policy
		report   func(apply.Ref) apply.Report
		err      error
		now      string
		want     bool
	}{
		"the version is the same [F27]":           {now: "1", want: true},
		"the version is another":                  {now: "2"},
		"the engine detects changes of the child": {strategy: apply.StrategyApply, now: "1"},
		"the handler keeps the child":             {policy: apply.PolicyRetain, now: "1"},
		"the run failed":                          {err: errors.New("failed"), now: "1"},
		"the correction was postponed":            {report: func(ref apply.Ref) apply.Report { return apply.Report{Postponed: []apply.Ref{ref}} }, now: "1"},
		"the child is being deleted":              {report: func(ref apply.Ref) apply.Report { return apply.Report{Waiting: []apply.Waiting{{Ref: ref}}} }, now: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &memory{}
			child := childAt("1")[0]
			if tc.strategy == "" {
				tc.strategy = apply.StrategyUpdate
			}
			desired := func() []apply.Desired {
				return []apply.Desired{{Object: child.Object(), Strategy: tc.strategy, Policy: tc.policy}}
			}
			var report apply.Report
			if tc.report != nil {
				report = tc.report(child.Ref())
			}
			first := desired()
			m.recordUnchanged(m.markUnchanged(first, childAt("1")), report, tc.err)
			second := desired()
			m.markUnchanged(second, childAt(tc.now))
			if first[0].Unchanged || second[0].Unchanged != tc.want {
				t.Errorf("marked %t in the first run and %t in the second, want false and %t", first[0].Unchanged, second[0].Unchanged, tc.want)
			}
		})
	}
}
