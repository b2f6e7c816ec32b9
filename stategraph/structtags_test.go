// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// fakeObject is a Go type that the scheme of Kubernetes does not contain.
type fakeObject struct{ corev1.ConfigMap }

func newUnnamedConfigMap(context.Context) (*corev1.ConfigMap, error) {
	return newConfigMap("", nil), nil
}

// pointerResource implements Resource with pointer receivers, so that only *pointerResource is a Resource.
type pointerResource struct{ calls int }

func (p *pointerResource) Reconcile(context.Context) error          { p.calls++; return nil }
func (p *pointerResource) Ready(context.Context) (Readiness, error) { return Ready(), nil }
func (p *pointerResource) Listeners() []Listener                    { return []Listener{Poll(minInterval)} }

type base struct {
	Certificates Resource
}

type frontend struct {
	Service Resource `graph:"requires=pods"`
	Pods    Resource
}

type galera struct {
	base
	Client        *http.Client // not a resource
	Name          string
	PublicService Resource         `graph:"requires=ha-proxy"`
	HAProxy       stubResource     `graph:"requires=certificates; frontend-service"`
	Database      *pointerResource `graph:"name=db,requires=certificates"`
	Frontend      frontend         `graph:"requires=db"`
	Off           Resource         `graph:"-"`
	hidden        any
}

func TestFromStruct(t *testing.T) {
	v := &galera{PublicService: stubResource{}, Database: &pointerResource{}, Frontend: frontend{stubResource{}, stubResource{}}, base: base{stubResource{}}, hidden: 1}
	t.Run("the fields of a struct become components [Y14, Y15, Y29, Y30]", func(t *testing.T) {
		g, err := FromStruct(v)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range g.Components() {
			got = append(got, strings.TrimSpace(name+": "+strings.Join(g.Requires(name), " ")))
		}
		want := []string{
			"certificates:", "public-service: ha-proxy", "ha-proxy: certificates frontend-service", "db: certificates",
			"frontend-service: db frontend-pods", "frontend-pods: db",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if w, _ := newRun(g, newItem("x"), nil, nil, Log(t.Context()), 1).visitAll(t.Context()); !w.isReady() || v.Database.calls != 1 {
			t.Errorf("the field's own resource was called %d times: %v", v.Database.calls, w.err())
		}
	})
	t.Run("structs and pointers to structs are equal", func(t *testing.T) {
		g, err := FromStruct(struct{ A pointerResource }{})
		if err != nil || fmt.Sprint(g.Components()) != "[a]" {
			t.Error(g, err)
		}
	})
}

type loop struct {
	Loop *loop `graph:"name=l"`
	A    Resource
}

func TestFromStructErrors(t *testing.T) {
	circle := &loop{A: stubResource{}}
	circle.Loop = circle
	var none *galera
	tests := map[string]struct {
		v    any
		want string
	}{
		"a value that is not a struct": {3, "a graph can only be built from a struct, not from int"},
		"nil":                          {nil, "a graph can only be built from a struct, not from <nil>"},
		"a nil pointer":                {none, "a graph can only be built from a struct, not from *stategraph.galera"},
		"a struct without fields":      {struct{}{}, "the graph has no components"},
		"a field that is nil":          {struct{ A Resource }{}, `component "a": has no resource (nil)`},
		"an unexported field":          {struct{ a Resource }{stubResource{}}, `a: an unexported field cannot be a component; use the tag "-" to ignore the field`},
		"a tag of a field that is not a component": {struct {
			A int `graph:"name=x"`
		}{}, "A: a int is not a resource"},
		"an invalid tag": {struct {
			A stubResource `graph:"needs=x"`
		}{}, `A: the tag has "needs=x", want "name=…" or "requires=…;…"`},
		"a tag that names an unknown component": {struct {
			A stubResource `graph:"requires=b"`
		}{}, `component "a": requires "b", which does not exist`},
		"nested structs that form a cycle": {circle, "structs are nested more than 8 levels deep"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := FromStruct(test.v)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestToKebab(t *testing.T) {
	for name, want := range map[string]string{
		"A": "a", "PublicService": "public-service", "HAProxy": "ha-proxy", "TLSCert2": "tls-cert2", "DB": "db", "My_Field": "my-field", "ÄÖ": "äö",
	} {
		if got := toKebab(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
