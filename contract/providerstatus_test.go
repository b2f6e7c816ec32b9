// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"slices"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

func raw(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }

func TestCheckProviderStatus(t *testing.T) {
	t.Parallel()
	large := func(n int) *runtime.RawExtension {
		head := `{"apiVersion":"v1","kind":"S","x":"`
		return raw(head + strings.Repeat("x", n-len(head)-2) + `"}`)
	}
	for name, tc := range map[string]struct {
		raw  *runtime.RawExtension
		want string
	}{
		"absent":                 {nil, ""},
		"empty":                  {&runtime.RawExtension{}, ""},
		"null":                   {raw("null"), ""},
		"good":                   {raw(`{"apiVersion":"a.b/v1","kind":"Status","metadata":{"name":"x"},"y":[1]}`), ""},
		"good object":            {&runtime.RawExtension{Object: &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}}}, ""},
		"object without type":    {&runtime.RawExtension{Object: &metav1.Status{}}, "no apiVersion"},
		"not JSON":               {raw(`{`), "is not JSON"},
		"list":                   {raw(`[]`), "is not an object"},
		"text":                   {raw(`"x"`), "is not an object"},
		"empty object":           {raw(`{}`), "no apiVersion"},
		"empty apiVersion":       {raw(`{"apiVersion":"","kind":"S"}`), "no apiVersion"},
		"apiVersion is a number": {raw(`{"apiVersion":1,"kind":"S"}`), "no apiVersion"},
		"invalid apiVersion":     {raw(`{"apiVersion":"a b/c/d","kind":"S"}`), "invalid apiVersion"},
		"no kind":                {raw(`{"apiVersion":"v1"}`), "no kind"},
		"invalid kind":           {raw(`{"apiVersion":"v1","kind":"a_b.c"}`), "invalid kind"},
		"invalid metadata":       {raw(`{"apiVersion":"v1","kind":"S","metadata":{"name":1}}`), "invalid metadata"},
		"1 MiB":                  {large(1 << 20), ""},
		"more than 1 MiB":        {large(1<<20 + 1), "is 1048577 bytes, at most 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := contract.CheckProviderStatus(tc.raw)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("unexpected: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%v, want %q", err, tc.want)
			case tc.want != "" && !slices.Contains(contract.ErrorCodes(err), lsv1alpha1.ErrorConfigurationProblem):
				t.Errorf("codes %v", contract.ErrorCodes(err))
			}
		})
	}
}
