// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestLay(t *testing.T) {
	type object = map[string]any
	container := func(more object) object {
		return Overlay(object{"name": "a", "image": "i"}, more)
	}
	for name, tc := range map[string]struct{ live, want, laid any }{
		"same":                     {object{"a": "1"}, object{"a": "1"}, nil},
		"field of another manager": {object{"a": "1", "b": "2"}, object{"a": "1"}, nil},
		"deep":                     {object{"a": object{"b": "1", "c": "2"}}, object{"a": object{"b": "2"}}, object{"a": object{"b": "2", "c": "2"}}},
		"missing":                  {object{}, object{"a": ""}, object{"a": ""}},
		"int and float":            {object{"a": int64(1)}, object{"a": 1.0}, nil},
		"other number":             {object{"a": int64(1)}, object{"a": 1.5}, object{"a": 1.5}},
		"null":                     {object{"a": "1"}, object{"a": nil, "b": nil}, nil},
		"nothing but null":         {object{}, object{"a": object{"b": nil}}, nil},
		"other type":               {object{"a": "1"}, object{"a": object{"b": "1"}}, object{"a": object{"b": "1"}}},
		"items by name":            {[]any{object{"name": "b"}, container(object{"more": "x"})}, []any{container(nil), object{"name": "b"}}, nil},
		"item changed":             {[]any{container(object{"image": "j", "more": "x"})}, []any{container(nil)}, []any{container(object{"more": "x"})}},
		"other item":               {[]any{object{"name": "b", "more": "x"}}, []any{container(nil)}, []any{container(nil)}},
		"items by place":           {[]any{object{"port": int64(1), "protocol": "TCP"}}, []any{object{"port": int64(1)}}, nil},
		"names that occur twice":   {[]any{object{"name": "a", "x": "1"}, object{"name": "a", "y": "1"}}, []any{object{"name": "a"}, object{"name": "a", "y": "1"}}, nil},
		"item more":                {[]any{"a", "b"}, []any{"a"}, []any{"a"}},
		"item less":                {[]any{"a"}, []any{"a", "b"}, []any{"a", "b"}},
		"no list":                  {"a", []any{"a"}, []any{"a"}},
		"empty list":               {object{"a": []any{"x"}}, object{"a": []any{}}, object{"a": []any{}}},
	} {
		t.Run(name+" [F61]", func(t *testing.T) {
			live := runtime.DeepCopyJSON(object{"it": tc.live})
			if tc.laid == nil {
				tc.laid = tc.live
			}
			if diff := cmp.Diff(tc.laid, Lay(tc.live, tc.want)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(live, object{"it": tc.live}); diff != "" {
				t.Error("an argument was changed", diff)
			}
		})
	}
}

func TestRekey(t *testing.T) {
	type object = map[string]any
	port := func(name string, number int64) object { return object{"name": name, "port": number} }
	for name, tc := range map[string]struct{ live, want, out any }{
		"changes an item with the same name":             {[]any{object{"name": "a", "port": int64(1), "more": "x"}}, []any{port("a", 2)}, []any{object{"name": "a", "port": int64(2), "more": "x"}}},
		"adds a field to an item":                        {[]any{object{"name": "a"}}, []any{port("a", 2)}, []any{port("a", 2)}},
		"keeps an item of another manager and adds none": {[]any{port("b", 1), port("a", 1)}, []any{port("c", 3), port("a", 2)}, []any{port("b", 1), port("a", 2)}},
		"changes a single item without a name":           {[]any{object{"port": int64(1)}}, []any{object{"port": int64(2)}}, []any{object{"port": int64(2)}}},
		"keeps a single item with another name":          {[]any{port("a", 1)}, []any{object{"port": int64(2)}}, []any{port("a", 1)}},
		"keeps items without a name":                     {[]any{object{"port": int64(1)}, object{"port": int64(3)}}, []any{object{"port": int64(2)}}, []any{object{"port": int64(1)}, object{"port": int64(3)}}},
		"keeps items whose name occurs twice":            {[]any{port("a", 1), port("a", 2)}, []any{port("a", 3)}, []any{port("a", 1), port("a", 2)}},
		"changes an item in an item":                     {[]any{object{"name": "c", "ports": []any{port("a", 1)}}}, []any{object{"name": "c", "ports": []any{port("a", 2)}}}, []any{object{"name": "c", "ports": []any{port("a", 2)}}}},
		"sets a field and keeps others":                  {object{"a": "1", "b": "2"}, object{"a": "2"}, object{"a": "2", "b": "2"}},
		"ignores null":                                   {object{"a": "1"}, object{"a": nil, "b": nil}, object{"a": "1"}},
		"keeps the form of a number":                     {object{"a": int64(1)}, object{"a": 1.0}, object{"a": int64(1)}},
		"keeps a value of another type than a map":       {object{"a": "1"}, object{"a": object{"b": "1"}}, object{"a": "1"}},
		"adds a list":                                    {object{}, object{"a": []any{"1"}}, object{"a": []any{"1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			live := runtime.DeepCopyJSON(object{"it": tc.live})
			if diff := cmp.Diff(tc.out, Rekey(tc.live, tc.want)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(live, object{"it": tc.live}); diff != "" {
				t.Error("an argument was changed", diff)
			}
		})
	}
}

func TestMerging(t *testing.T) {
	type object = map[string]any
	base := object{"same": "a", "zero": "", "none": nil, "list": []any{"a"}, "empty": []any{}, "deep": object{"a": int64(1), "zero": int64(0)}}
	more := object{"same": "b", "zero": "b", "none": "b", "list": []any{"b"}, "empty": []any{"b"}, "deep": object{"a": int64(2), "zero": int64(2), "new": nil}, "new": false}
	t.Run("Fill adds missing fields [D9]", func(t *testing.T) {
		want := object{"same": "a", "zero": "b", "none": "b", "list": []any{"a"}, "empty": []any{"b"}, "deep": object{"a": int64(1), "zero": int64(2), "new": nil}, "new": false}
		if diff := cmp.Diff(want, Fill(base, more)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("Overlay replaces fields [D9]", func(t *testing.T) {
		want := object{"same": "b", "zero": "b", "none": "b", "list": []any{"b"}, "empty": []any{"b"}, "deep": object{"a": int64(2), "zero": int64(2), "new": nil}, "new": false}
		if diff := cmp.Diff(want, Overlay(base, more)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if base["same"] != "a" || more["same"] != "b" {
			t.Error("an argument was changed")
		}
	})
	t.Run("MergePatch leads from one object to the other", func(t *testing.T) {
		from, to := object{"a": "1", "gone": "x", "deep": object{"a": "1", "gone": "x"}}, object{"a": "2", "deep": object{"a": "1"}, "new": "x"}
		want := object{"a": "2", "gone": nil, "deep": object{"gone": nil}, "new": "x"}
		if diff := cmp.Diff(want, MergePatch(from, to)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestUnmatched(t *testing.T) {
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
			if diff := cmp.Diff(test.want, Unmatched(live, wanted, test.below, test.mutable)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
