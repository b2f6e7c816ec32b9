// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestChangedFields(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, live, below string
		mutable             map[string]bool
		want                []string
	}{
		"below a part of the object [F42]": {
			"spec: {template: {spec: {containers: [{name: a, image: two}]}}}",
			"spec: {template: {spec: {containers: [{name: a, image: one, imagePullPolicy: Always}]}}}", ".spec.template", nil,
			[]string{".spec.template.spec.containers[0].image"},
		},
		"not those that may be changed [F42]": {
			"spec: {replicas: 2, serviceName: b}", "spec: {replicas: 1, serviceName: a}", ".spec", map[string]bool{"replicas": true}, []string{".spec.serviceName"},
		},
		"lists of another length":              {"spec: {a: [1]}", "spec: {a: [1, 2]}", ".spec", nil, []string{".spec.a"}},
		"a value instead of an object":         {"spec: {a: {b: 1}}", "spec: {a: 1}", ".spec", nil, []string{".spec.a"}},
		"what is not wanted does not count":    {"spec: {a: 1}", "spec: {a: 1, b: 2}", ".spec", nil, nil},
		"a field that was named exactly":       {"spec: {clusterIP: b}", "spec: {clusterIP: a}", ".spec.clusterIP", nil, nil},
		"a path that the object does not have": {"spec: {}", "spec: {}", ".status[0].x", nil, nil},
		"no path":                              {"spec: {a: 1}", "spec: {a: 2}", "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var wanted, live map[string]any
			for text, into := range map[string]*map[string]any{test.wanted: &wanted, test.live: &live} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, changedFields(wanted, live, test.below, test.mutable)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
