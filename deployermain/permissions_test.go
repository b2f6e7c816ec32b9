// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// newReviewer returns a client that answers access reviews. It allows only the given rights, which have the form
// verb/subresource.
func newReviewer(asked *int, broken bool, rights ...string) client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			*asked++
			if broken {
				return errors.New("no answer")
			}
			review := obj.(*unstructured.Unstructured)
			verb, _, _ := unstructured.NestedString(review.Object, "spec", "resourceAttributes", "verb")
			subresource, _, _ := unstructured.NestedString(review.Object, "spec", "resourceAttributes", "subresource")
			return unstructured.SetNestedField(review.Object, slices.Contains(rights, verb+"/"+subresource), "status", "allowed")
		},
	}).Build()
}

func TestCheckWritePermissions(t *testing.T) {
	for name, tc := range map[string]struct {
		rights []string
		broken bool
		want   string
	}{
		"the permission to patch is enough [F59]":          {rights: []string{"patch/", "patch/status"}},
		"the permission to update is enough [F59]":         {rights: []string{"update/", "update/status"}},
		"one permission for each resource is enough [F59]": {rights: []string{"patch/", "update/status"}},
		"no permission for the item is an error [F59]":     {rights: []string{"patch/status"}, want: "of deployitems is"},
		"no permission for the status is an error [F59]":   {rights: []string{"update/"}, want: "of deployitems/status is"},
		"a failed review is not an error":                  {broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			w := &writeCheck{client: newReviewer(&asked, tc.broken, tc.rights...)}
			for range 2 {
				err := w.check(httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("check() = %v, want %q", err, tc.want)
				}
			}
			if tc.want == "" && asked > 4 {
				t.Errorf("got %d access reviews, want no more after the write is allowed", asked)
			}
		})
	}
}
