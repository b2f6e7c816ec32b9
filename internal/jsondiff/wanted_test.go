// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestMergeWanted(t *testing.T) {
	type object = map[string]any
	container := func(more object) object {
		return MergeOverlay(object{"name": "a", "image": "i"}, more)
	}
	for name, tc := range map[string]struct{ live, want, laid any }{
		"equal values":                                   {object{"a": "1"}, object{"a": "1"}, nil},
		"keeps a field of another manager":               {object{"a": "1", "b": "2"}, object{"a": "1"}, nil},
		"changes a field in an object":                   {object{"a": object{"b": "1", "c": "2"}}, object{"a": object{"b": "2"}}, object{"a": object{"b": "2", "c": "2"}}},
		"adds a missing field":                           {object{}, object{"a": ""}, object{"a": ""}},
		"an integer equals a float":                      {object{"a": int64(1)}, object{"a": 1.0}, nil},
		"changes a number":                               {object{"a": int64(1)}, object{"a": 1.5}, object{"a": 1.5}},
		"null changes nothing":                           {object{"a": "1"}, object{"a": nil, "b": nil}, nil},
		"adds no object that contains only null":         {object{}, object{"a": object{"b": nil}}, nil},
		"replaces a value of another type":               {object{"a": "1"}, object{"a": object{"b": "1"}}, object{"a": object{"b": "1"}}},
		"compares items with the same name":              {[]any{object{"name": "b"}, container(object{"more": "x"})}, []any{container(nil), object{"name": "b"}}, nil},
		"changes an item, and keeps its other fields":    {[]any{container(object{"image": "j", "more": "x"})}, []any{container(nil)}, []any{container(object{"more": "x"})}},
		"replaces an item with another name":             {[]any{object{"name": "b", "more": "x"}}, []any{container(nil)}, []any{container(nil)}},
		"compares items without names by index":          {[]any{object{"port": int64(1), "protocol": "TCP"}}, []any{object{"port": int64(1)}}, nil},
		"compares items by index if a name occurs twice": {[]any{object{"name": "a", "x": "1"}, object{"name": "a", "y": "1"}}, []any{object{"name": "a"}, object{"name": "a", "y": "1"}}, nil},
		"removes an additional item":                     {[]any{"a", "b"}, []any{"a"}, []any{"a"}},
		"adds a missing item":                            {[]any{"a"}, []any{"a", "b"}, []any{"a", "b"}},
		"replaces a value that is not a list":            {"a", []any{"a"}, []any{"a"}},
		"removes all items":                              {object{"a": []any{"x"}}, object{"a": []any{}}, object{"a": []any{}}},
	} {
		t.Run(name+" [F61]", func(t *testing.T) {
			live := runtime.DeepCopyJSON(object{"it": tc.live})
			if tc.laid == nil {
				tc.laid = tc.live
			}
			if diff := cmp.Diff(tc.laid, MergeWanted(tc.live, tc.want)); diff != "" {
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
			if diff := cmp.Diff(tc.out, MergeWantedByName(tc.live, tc.want)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(live, object{"it": tc.live}); diff != "" {
				t.Error("an argument was changed", diff)
			}
		})
	}
}
