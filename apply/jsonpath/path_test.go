// SPDX-License-Identifier: Apache-2.0

package jsonpath

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"github.com/deployerkit/deployerkit/internal/testtime"
)

const object = `{
  "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web"}},
  "spec": {"replicas": 2, "nothing": null, "containers": [{"name": "a"}, {"name": "b", "image": "b:1"}], "empty": []},
  "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]}
}`

func decodeObject(t *testing.T) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(object), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFind(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		path   string
		want   []any
	}{
		"Plain":      {reason: "The leading dot is optional.", path: "metadata.name", want: []any{"web"}},
		"Dot":        {reason: "A leading dot is allowed.", path: ".metadata.name", want: []any{"web"}},
		"Braces":     {reason: "Braces are allowed.", path: "{.metadata.name}", want: []any{"web"}},
		"Dollar":     {reason: "A leading $ is allowed.", path: "$.metadata.name", want: []any{"web"}},
		"Escaped":    {reason: "A dot in a name is escaped.", path: `metadata.labels.app\.kubernetes\.io/name`, want: []any{"web"}},
		"Quoted":     {reason: "A dot in a name is quoted.", path: `metadata.labels['app\.kubernetes\.io/name']`, want: []any{"web"}},
		"Filter":     {reason: "A filter selects elements of a list.", path: `status.conditions[?(@.type=="Ready")].status`, want: []any{"True"}},
		"Several":    {reason: "A path may yield several values.", path: "status.conditions[*].status", want: []any{"True", "False"}},
		"SomeAbsent": {reason: "Elements without the field are skipped.", path: "spec.containers[*].image", want: []any{"b:1"}},
		"Union":      {reason: "A union yields its parts.", path: "spec.containers[0,1].name", want: []any{"a", "b"}},
		"Recursive":  {reason: "Recursive descent finds fields at any depth.", path: "..image", want: []any{"b:1"}},
		"InOrder":    {reason: "Recursive descent visits fields in the order of their names.", path: "..name", want: []any{"web", "a", "b"}},
		"Null":       {reason: "Null is a value.", path: "spec.nothing", want: []any{nil}},
		"Absent":     {reason: "A missing key yields no value.", path: "spec.paused"},
		"BelowNone":  {reason: "A key below a missing key yields no value.", path: "spec.a.b.c"},
		"BelowNull":  {reason: "A key below null yields no value.", path: "spec.nothing.a"},
		"BelowText":  {reason: "A key below a string yields no value.", path: "metadata.name.first"},
		"NotAList":   {reason: "An index into a map finds nothing.", path: "spec[0]"},
		"BeyondEnd":  {reason: "An index beyond the end finds nothing.", path: "spec.containers[7]"},
		"EmptyList":  {reason: "An empty list yields no value.", path: "spec.empty[*]"},
		"NoMatch":    {reason: "A filter without a match finds nothing and does not panic.", path: `status.conditions[?(@.type=="Other")].status`},
	} {
		t.Run(name+" [H-27]", func(t *testing.T) {
			path, err := Parse(tc.path)
			if err != nil {
				t.Fatalf("%s\nParse(%q): %v", tc.reason, tc.path, err)
			}
			for range 2 { // the second call must return the same result
				got, err := path.Find(t.Context(), decodeObject(t))
				if (err != nil) != (tc.want == nil) || (err != nil && !errors.Is(err, ErrNotFound)) {
					t.Errorf("%s\nFind(...): got error %v", tc.reason, err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\nFind(...): -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestFindAgreesWithClientGo compares the result with the evaluation that kubectl uses. Client-go descends into the
// fields of an object in random order. The test therefore ignores the order of the values that a recursive descent
// finds.
func TestFindAgreesWithClientGo(t *testing.T) {
	for _, text := range []string{
		"metadata.name", "spec.containers[*].name", "spec.containers[*].image", "spec.containers[-1].name", "spec.containers[-1:].name",
		"spec.containers[0:1].name", "spec.containers[0:2:2].name", "spec.containers[::2].name", "spec.containers[1:1]", "spec.containers[2]", "spec.containers[-3]",
		"spec.containers[0:3]", "spec.containers[1:0]", "spec.containers[::-1]", "spec.containers[::0]", "spec['replicas','nothing']", "spec['replicas','other']",
		"spec.containers[0,1].name", "spec.containers[0,1].image", "..name", "..type", "..containers[0].name", "spec..[0]", "spec.containers.name",
		`spec.containers[?(@.image)].name`, `spec.containers[?(@.image=="b:1")].name`, `spec.containers[?(@.name!="a")].name`, `spec.containers[?(@.name>="a")].name`,
		`spec.containers[?(@.name<"b")].name`, `spec.containers[?(@.name==@.image)].name`, `spec.containers[?(@.name==1)]`, `spec.containers[?(@.name=="a")].image`,
		`spec.containers[?(1==1)].name`, `spec.containers[?(@.name==true)]`, `spec[?(@.a=="b")]`, "spec.nothing", "spec.nothing.a", "spec.nothing[0]", "spec.empty[*]", "spec.empty[0]", "$", "@", ".",
		`status.conditions[?(@.type=="Ready")].status`, `status.conditions[?(@.type=="Other")].status`,
	} {
		path, err := Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		oracle := jsonpath.New("oracle")
		if err := oracle.Parse(addBraces(text)); err != nil {
			t.Fatal(err)
		}
		var want []any
		if results, err := oracle.FindResults(decodeObject(t)); err == nil && len(results) == 1 {
			for _, result := range results[0] {
				want = append(want, result.Interface())
			}
		}
		got, _ := path.Find(t.Context(), decodeObject(t))
		var options cmp.Options
		if strings.Contains(text, "..") {
			options = append(options, cmpopts.SortSlices(func(a, b any) int {
				return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
			}))
		}
		if diff := cmp.Diff(want, got, options); diff != "" {
			t.Errorf("%q: -client-go, +got:\n%s", text, diff)
		}
	}
}

func TestParseRejectsInvalidPaths(t *testing.T) {
	for name, text := range map[string]string{
		"Empty": "", "Unclosed": "{.a", "UnclosedFilter": ".a[?(@.b==1)", "Text": "{.a} and more", "TwoActions": "{.a}{.b}", "Hidden": ".a}{.b",
		"Range": "{range .a}", "End": "{end}", "Constant": `{"a"}`, "Number": "{7}", "Bool": "{true}", "NoNumber": ".a[x]", "Lonely": ".a[", "Long": strings.Repeat("a", 2000),
		"Descents": "..a..b..c", "Commas": "[0,0,0][0,0,0][0,0,0][0,0,0][0,0,0]",
		"UnionOfConstants": `[true,1]`,
	} {
		t.Run(name, func(t *testing.T) {
			if path, err := Parse(text); err == nil {
				t.Errorf("Parse(%.50q): want an error, got %v", text, path)
			}
		})
	}
}

func TestParseKey(t *testing.T) {
	for text, want := range map[string][]string{
		"url":           {"url"},
		"db.conn.url":   {"db", "conn", "url"},
		".db.url":       {"db", "url"},
		`a\.b.c`:        {"a.b", "c"},
		"my-key.a_b":    {"my-key", "a_b"},
		"":              nil,
		"a[0]":          nil,
		"a.*":           nil,
		"a..b":          nil,
		"{range .a}":    nil,
		"a[?(@.b==1)].": nil,
		".":             nil,
	} {
		got, err := ParseKey(text)
		if (err == nil) != (want != nil) {
			t.Errorf("ParseKey(%q): got %q, error %v", text, got, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseKey(%q): -want, +got:\n%s", text, diff)
		}
	}
}

// newNested returns {"a": {"a": …}} with the given number of levels.
func newNested(levels int) map[string]any {
	out := map[string]any{}
	for range levels - 1 {
		out = map[string]any{"a": out}
	}
	return out
}

func TestFindLimitsTheSteps(t *testing.T) {
	wide := make([]any, 2000)
	for i := range wide {
		wide[i] = map[string]any{"b": []any{nil, nil, nil}}
	}
	for name, tc := range map[string]struct {
		reason, path string
		object       map[string]any
		limited      bool
	}{
		"Deep":         {reason: "the evaluation of an object of 4.8 KB once took 15 s", path: "..a..a", object: newNested(960), limited: true},
		"DeepOnce":     {reason: "one recursive descent is limited", path: "..a", object: newNested(maxDepth + 2), limited: true},
		"Deepest":      {reason: "objects as deep as CustomResourceDefinitions are allowed", path: "..a..a", object: newNested(maxDepth + 1)},
		"NoDescent":    {reason: "a path without a descent goes no deeper than it is long", path: "a.a.a", object: newNested(1000)},
		"Wide":         {reason: "a large object is allowed", path: "..b[*]", object: map[string]any{"items": wide}, limited: false},
		"Repeated":     {reason: "a union multiplies the work", path: "[0,0,0,0,0][0,0,0,0,0]", object: map[string]any{}, limited: false},
		"UnionOfLists": {reason: "a union of lists multiplies the work", path: ".items[0:,0:,0:].b[0:,0:,0:].x..y", object: map[string]any{"items": append([]any{}, wide...)}},
		"Product":      {reason: "descents and unions together", path: "..items[0:,0:,0:,0:,0:,0:].b[0:,0:,0:]", object: map[string]any{"items": slices.Repeat(wide, 5)}, limited: true},
		"Filters":      {reason: "filters within filters", path: ".items[?(@.b)].b[?(@==null)]..x", object: map[string]any{"items": wide}},
	} {
		t.Run(name+" [F5]", func(t *testing.T) {
			path, err := Parse(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err = path.Find(t.Context(), tc.object)
			if errors.Is(err, ErrLimit) != tc.limited {
				t.Errorf("%s\nFind(...): got error %v", tc.reason, err)
			}
			if err != nil && tc.limited && !strings.Contains(err.Error(), tc.path) {
				t.Errorf("the error does not name the path: %v", err)
			}
			if took := time.Since(began); took > testtime.ScaleTimeout(2*time.Second) {
				t.Errorf("Find took %s", took)
			}
		})
	}
}

func TestFindStopsWhenContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the job is over")
	cancel(cause)
	path, err := Parse("..a..a")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Find stops when the context ends [F5]", func(t *testing.T) {
		if found, err := path.Find(ctx, newNested(maxDepth)); !errors.Is(err, cause) || errors.Is(err, ErrNotFound) || found != nil {
			t.Errorf("Find(ended context): got %d values, %v", len(found), err)
		}
	})
}

// FuzzFind requires that Find returns JSON values or an error for every accepted path. A second call must return the
// same result, each call must be fast, and the object must not change.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{"a.b", "{.a}", "..a", ".a[?(@.b=='c')].d", ".a[1:2,3]", `['a\.b']`, "$", "{range .a}{end}", ".a[-1:]", "[", "{", ".a[?(", "['", "\x00", "..[*]..[*]", "$..*", ".a[::0]", ".a[::-1]", ".a[9223372036854775807]", "[0,0,0,0,0]", " A ", "{}}", ".a.missing", "[000A]"} {
		f.Add(seed, object)
	}
	f.Add(".a.b", `{"a":{"b":1}}`)
	f.Add("..[*]..[*]", `{"a":`+strings.Repeat(`[{"b":`, 40)+`1`+strings.Repeat(`}]`, 40)+`}`)
	f.Fuzz(func(t *testing.T, text, body string) {
		if key, err := ParseKey(text); err == nil && (len(key) == 0 || slices.Contains(key, "")) {
			t.Errorf("ParseKey(%q) = %q", text, key)
		}
		path, err := Parse(text)
		if err != nil {
			return
		}
		values := map[string]any{}
		if len(body) > 1<<12 || json.Unmarshal([]byte(body), &values) != nil {
			return
		}
		before := runtime.DeepCopyJSON(values)
		began := time.Now()
		got, err := path.Find(t.Context(), values)
		if took := time.Since(began); took > testtime.ScaleTimeout(5*time.Second) {
			t.Errorf("Find took %s", took)
		}
		if (err == nil) != (len(got) > 0) || err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrLimit) {
			t.Errorf("Find: %d values, error %v", len(got), err)
		}
		first, bad := json.Marshal(got)
		if bad != nil {
			t.Errorf("Find gave what is no JSON: %v", bad)
		}
		again, err2 := path.Find(t.Context(), values)
		if second, _ := json.Marshal(again); len(values) < 2 && !bytes.Equal(first, second) || (err == nil) != (err2 == nil) || len(got) != len(again) {
			t.Errorf("Find: first %s, %v, then %s, %v", first, err, second, err2)
		}
		if !reflect.DeepEqual(before, values) { // reflect is used because cmp takes too long for deep lists
			t.Errorf("Find changed the object: %v", values)
		}
	})
}
