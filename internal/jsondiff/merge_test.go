// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		if diff := cmp.Diff(want, MergeOverlay(base, more)); diff != "" {
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
