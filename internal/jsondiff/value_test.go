// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestRoundTrip compares a copy with the result of encoding and decoding the value.
func TestRoundTrip(t *testing.T) {
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
			got, err := RoundTrip(in)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	t.Run("a value that contains itself", func(t *testing.T) {
		in := map[string]any{}
		in["itself"] = []any{in}
		if got, err := RoundTrip(in); err == nil {
			t.Errorf("RoundTrip(a value that contains itself) = %v, want an error", got)
		}
	})
	t.Run("a copy is independent", func(t *testing.T) {
		inner, list := map[string]any{"a": "b"}, []any{"a"}
		got, err := RoundTrip(map[string]any{"inner": inner, "list": list})
		inner["a"], list[0] = "c", "c"
		if diff := cmp.Diff(map[string]any{"inner": map[string]any{"a": "b"}, "list": []any{"a"}}, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}

// TestEqualNumbers uses Go values, because a YAML decoder turns 2.0 into a whole number.
func TestEqualNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b any
		want bool
	}{
		"a float without a fraction": {int64(2), 2.0, true},
		"a float as the first value": {2.0, int64(2), true},
		"float":                      {int64(2), 2.5, false},
		"numbers in a list":          {[]any{int64(1), 2.0}, []any{1.0, int64(2)}, true},
		"integers beyond 2^53":       {int64(1) << 53, int64(1)<<53 + 1, false},
		"a number and a string":      {int64(2), "2", false},
		"a number and a boolean":     {int64(1), true, false},
	} {
		t.Run(name+" [D13]", func(t *testing.T) {
			if got := Equal(tc.a, tc.b); got != tc.want {
				t.Errorf("Equal(%v, %v) = %t, want %t", tc.a, tc.b, got, tc.want)
			}
		})
	}
}
