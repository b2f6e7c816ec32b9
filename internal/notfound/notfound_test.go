// SPDX-License-Identifier: Apache-2.0

package notfound_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/internal/notfound"
)

func TestIsProof(t *testing.T) {
	items := schema.GroupResource{Group: "landscaper.gardener.cloud", Resource: "deployitems"}
	denied := apierrors.NewNotFound(items, "a")
	denied.ErrStatus.Message = `admission webhook "w.x" denied the request: not found`
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a 404 that names the object proves that it is gone [F70]": {apierrors.NewNotFound(items, "a"), true},
		"a wrapped 404 proves the same [F70]":                      {fmt.Errorf("get: %w", apierrors.NewNotFound(items, "a")), true},
		"a 404 of a proxy proves nothing [F70]":                    {apierrors.NewGenericServerResponse(404, "get", items, "a", "page not found", 0, true), false},
		"a 404 without details proves nothing [F70]":               {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}}, false},
		"a 404 of an admission webhook proves nothing [F70]":       {denied, false},
		"another error proves nothing [F70]":                       {errors.New("not found"), false},
		"no error proves nothing [F70]":                            {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := notfound.IsProof(tc.err); got != tc.want {
				t.Errorf("got %t for %v, want %t", got, tc.err, tc.want)
			}
		})
	}
}
