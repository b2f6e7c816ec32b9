// SPDX-License-Identifier: Apache-2.0

package landscapertest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/patch"
)

// fakeTB records the output of a failing test.
type fakeTB struct {
	testing.TB
	said []string
}

func (l *fakeTB) Helper() {}

func (l *fakeTB) Errorf(format string, args ...any) {
	l.said = append(l.said, fmt.Sprintf(format, args...))
}

func TestVerifyIdempotent(t *testing.T) {
	appends := func(body map[string]any) error {
		list, _ := body["list"].([]any)
		body["list"] = append(list, "x")
		return nil
	}
	looksFirst := func(body map[string]any) error {
		if list, _ := body["list"].([]any); slices.Contains(list, any("x")) {
			return nil
		}
		return appends(body)
	}
	onlyOnce := func(body map[string]any) error {
		if body["list"] != nil {
			return errors.New("boom")
		}
		return appends(body)
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	full := &unstructured.Unstructured{Object: map[string]any{"list": []any{"x"}}}
	cases := map[string]struct {
		fn      patch.Func
		objects []client.Object
		want    string
	}{
		"a function that checks for the item passes [K31]":                 {looksFirst, []client.Object{empty, full}, ""},
		"a function that always appends fails [K31]":                       {appends, []client.Object{empty}, "changes the object again"},
		"a function that returns an error for the second call fails [K31]": {onlyOnce, []client.Object{empty}, "object 0: second call: patch function 0: boom"},
		"the error of a function is reported":                              {onlyOnce, []client.Object{full}, "object 0: first call"},
		"typed objects are supported":                                      {patch.Typed(func(cm *corev1.ConfigMap) error { cm.Name += "x"; return nil }), []client.Object{&corev1.ConfigMap{}}, "changes the object again"},
		"a check without objects fails":                                    {looksFirst, nil, "needs at least one object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &fakeTB{TB: t}
			landscapertest.VerifyIdempotent(l, tc.fn, tc.objects...)
			if said := strings.Join(l.said, "\n"); tc.want == "" && said != "" || !strings.Contains(said, tc.want) {
				t.Errorf("said %q, want %q", said, tc.want)
			}
		})
	}
	if diff := cmp.Diff(map[string]any{}, empty.Object); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
}

const cleanup = "example.org/cleanup"

func addFinalizer(body map[string]any) error {
	finalizers, _, err := unstructured.NestedStringSlice(body, "metadata", "finalizers")
	if err != nil || slices.Contains(finalizers, cleanup) {
		return err
	}
	return unstructured.SetNestedStringSlice(body, append(finalizers, cleanup), "metadata", "finalizers")
}

func TestVerifyIdempotentInGuide(t *testing.T) {
	without, with := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	with.Finalizers = []string{"example.org/other", cleanup}
	landscapertest.VerifyIdempotent(t, addFinalizer, without, with)
}
