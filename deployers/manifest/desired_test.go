// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
)

func TestRemoveDuplicates(t *testing.T) {
	one := func(name string, policy apply.Policy) apply.Desired {
		return apply.Desired{Policy: policy, Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": name},
		}}}
	}
	tests := map[string]struct{ in, want []apply.Desired }{
		"different objects":                                {[]apply.Desired{one("a", ""), one("b", "")}, []apply.Desired{one("a", ""), one("b", "")}},
		"an object that occurs twice":                      {[]apply.Desired{one("a", ""), one("b", ""), one("a", "")}, []apply.Desired{one("a", ""), one("b", "")}},
		"an object that is first ignored and then managed": {[]apply.Desired{one("a", apply.PolicyIgnore), one("a", apply.PolicyKeep)}, []apply.Desired{one("a", apply.PolicyKeep)}},
		"an object that is first managed and then ignored": {[]apply.Desired{one("a", apply.PolicyKeep), one("a", apply.PolicyIgnore)}, []apply.Desired{one("a", apply.PolicyKeep)}},
		"an object that is ignored twice":                  {[]apply.Desired{one("a", apply.PolicyIgnore), one("a", apply.PolicyIgnore)}, []apply.Desired{one("a", apply.PolicyIgnore)}},
		"no objects":                                       {nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, removeDuplicates(test.in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
