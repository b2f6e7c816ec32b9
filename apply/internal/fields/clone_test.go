// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestClone compares a copy with the result of encoding and decoding the value.
func TestClone(t *testing.T) {
	tests := map[string]any{
		"the types of JSON": map[string]any{"a": []any{"x", true, nil, int64(1), map[string]any{}, []any{}}},
		"other numbers":     []any{1, int32(2), uint8(3), 1.0, 0.5, 1e300, json.Number("7")},
		"nil":               []any{map[string]any(nil), []any(nil)},
		"other types":       []any{map[string]string{"a": "b"}, []string{"a"}, [2]int{1, 2}},
		"wrong characters":  map[string]any{"a\xff": "b\xff", "c": "<&>\u2028\x00"},
	}
	for name, value := range tests {
		t.Run(name, func(t *testing.T) {
			in := map[string]any{"value": value}
			data, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			if err := utiljson.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			got, err := Clone(in)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	t.Run("a value that contains itself", func(t *testing.T) {
		in := map[string]any{}
		in["itself"] = []any{in}
		if got, err := Clone(in); err == nil {
			t.Errorf("Clone(a value that contains itself) = %v, want an error", got)
		}
	})
	t.Run("a copy is independent", func(t *testing.T) {
		inner, list := map[string]any{"a": "b"}, []any{"a"}
		got, err := Clone(map[string]any{"inner": inner, "list": list})
		inner["a"], list[0] = "c", "c"
		if diff := cmp.Diff(map[string]any{"inner": map[string]any{"a": "b"}, "list": []any{"a"}}, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}
