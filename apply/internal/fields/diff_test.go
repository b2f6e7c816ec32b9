// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestFindUnmatched(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, live, below string
		mutable             map[string]bool
		want                []string
	}{
		"only the given part is compared [F42]": {
			"spec: {template: {spec: {containers: [{name: a, image: two}]}}}",
			"spec: {template: {spec: {containers: [{name: a, image: one, imagePullPolicy: Always}]}}}", ".spec.template", nil,
			[]string{".spec.template.spec.containers[0].image"},
		},
		"mutable fields are ignored [F42]": {
			"spec: {replicas: 2, serviceName: b}", "spec: {replicas: 1, serviceName: a}", ".spec", map[string]bool{"replicas": true}, []string{".spec.serviceName"},
		},
		"lists of another length":                 {"spec: {a: [1]}", "spec: {a: [1, 2]}", ".spec", nil, []string{".spec.a"}},
		"a value instead of an object":            {"spec: {a: {b: 1}}", "spec: {a: 1}", ".spec", nil, []string{".spec.a"}},
		"fields that are not desired are ignored": {"spec: {a: 1}", "spec: {a: 1, b: 2}", ".spec", nil, nil},
		"a field with an exact path":              {"spec: {clusterIP: b}", "spec: {clusterIP: a}", ".spec.clusterIP", nil, nil},
		"a path that the object does not have":    {"spec: {}", "spec: {}", ".status[0].x", nil, nil},
		"no path":                                 {"spec: {a: 1}", "spec: {a: 2}", "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var wanted, live map[string]any
			for text, into := range map[string]*map[string]any{test.wanted: &wanted, test.live: &live} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, FindUnmatched(live, wanted, test.below, test.mutable)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
