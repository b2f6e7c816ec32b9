// SPDX-License-Identifier: Apache-2.0

package absence

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

var (
	lampKind = schema.GroupKind{Group: "example.org", Kind: "Lamp"}
	lamps    = schema.GroupResource{Group: "example.org", Resource: "lamps"}
)

func TestFromError(t *testing.T) {
	noMatch := &meta.NoKindMatchError{GroupKind: lampKind, SearchedVersions: []string{"v1"}}
	unexpected := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", lamps, "a", "404 page not found", 0, true)
	denied := apierrors.NewNotFound(lamps, "a")
	denied.ErrStatus.Message = `admission webhook "w" denied the request: no`
	without := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}}
	kind := func(state KindState) error {
		return fmt.Errorf("read: %w", &KindError{Kind: lampKind, State: state, Err: noMatch})
	}
	for name, tc := range map[string]struct {
		err      error
		finished bool
		want     Meaning
	}{
		"no error":                                        {want: MeaningUnrelated},
		"a 404 that names the object":                     {err: fmt.Errorf("get: %w", apierrors.NewNotFound(lamps, "a")), want: MeaningGone},
		"a 404 that names a finished object":              {err: apierrors.NewNotFound(lamps, "a"), finished: true, want: MeaningFinished},
		"a 404 that names another object":                 {err: apierrors.NewNotFound(lamps, "b"), want: MeaningUnrelated},
		"a 404 of another group":                          {err: apierrors.NewNotFound(schema.GroupResource{Resource: "lamps"}, "a"), want: MeaningUnrelated},
		"a 404 that names a namespace like the object":    {err: apierrors.NewNotFound(schema.GroupResource{Group: "example.org", Resource: "namespaces"}, "a"), want: MeaningUnrelated},
		"a 404 that is not a Status":                      {err: unexpected, want: MeaningNotServed},
		"a 404 of a finished object that is not a Status": {err: unexpected, finished: true, want: MeaningNotServed},
		"a 404 without details":                           {err: without, want: MeaningNotServed},
		"a 404 of a list":                                 {err: apierrors.NewNotFound(lamps, ""), want: MeaningNotServed},
		"an unknown kind":                                 {err: noMatch, want: MeaningNotServed},
		"an incomplete discovery":                         {err: &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "example.org"}: errors.New("stale")}}, want: MeaningNotServed},
		"a kind that is served":                           {err: kind(KindServed), want: MeaningNotServed},
		"a kind that is not served":                       {err: kind(KindNotServed), want: MeaningNotServed},
		"a kind that is gone":                             {err: kind(KindGone), want: MeaningGone},
		"a finished object of a kind that is gone":        {err: kind(KindGone), finished: true, want: MeaningFinished},
		"a kind that the credentials may not discover":    {err: kind(KindForbidden), want: MeaningNotAllowed},
		"a forbidden request":                             {err: apierrors.NewForbidden(lamps, "a", errors.New("no")), want: MeaningNotAllowed},
		"a forbidden request for a finished object":       {err: apierrors.NewForbidden(lamps, "a", errors.New("no")), finished: true, want: MeaningNotAllowed},
		"a denial with the code 404":                      {err: denied, want: MeaningUnrelated},
		"a denial with the code 403":                      {err: apierrors.NewForbidden(lamps, "a", errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no")), want: MeaningUnrelated},
		"no response":                                     {err: errors.New("dial"), want: MeaningUnrelated},
		"overload":                                        {err: apierrors.NewServiceUnavailable("down"), want: MeaningUnrelated},
	} {
		t.Run(name+" [F70]", func(t *testing.T) {
			if got := ClassifyError(Object{Kind: lampKind, Name: "a", HasFinished: tc.finished}, tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("a denial with the code 404 does not mean that the kind is not served [F73]", func(t *testing.T) {
		if denied.ErrStatus.Details = nil; CanMeanNotServed(denied) {
			t.Error("the kind counts as not served")
		}
	})
	if got := ClassifyError(Object{Kind: schema.GroupKind{Kind: "Namespace"}, Name: "a"}, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a")); got != MeaningGone {
		t.Errorf("got %q for a namespace, want %q", got, MeaningGone)
	}
}
