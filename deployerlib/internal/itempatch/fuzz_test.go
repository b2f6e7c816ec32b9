// SPDX-License-Identifier: Apache-2.0

package itempatch_test

import (
	"encoding/json"
	"reflect"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
)

// FuzzDiff checks that the result of Diff, applied by an independent implementation of merge patches, converts base to
// wanted, and that equal objects have no difference.
func FuzzDiff(f *testing.F) {
	seeds := [][3]string{
		{`{}`, `{"a":1}`, `x/y`},
		{`{"a":{"b":[1,{"c":null}]}}`, `{"a":{"b":[{}],"c":{}}}`, `~0/~1`},
		{`{"a":1,"b":"x"}`, `{"a":{"d":{"e":null}},"b":null}`, ``},
		{`{"a":12345678901234567890}`, `{"a":1e3}`, `a`},
		{`{"a":[null]}`, `{"a":{}}`, `<&>`},
	}
	for _, s := range seeds {
		f.Add([]byte(s[0]), []byte(s[1]), s[2])
	}
	f.Fuzz(func(t *testing.T, baseStatus, wantedStatus []byte, key string) {
		base, ok := newFuzzObject(baseStatus, map[string]any{"keep": "1", "gone": "1"}, []any{"a/b"})
		if !ok {
			return
		}
		wanted, ok := newFuzzObject(wantedStatus, map[string]any{"keep": "1", key: "2"}, []any{"c/d", key})
		if !ok {
			return
		}
		changes, err := itempatch.Diff(base, wanted)
		if err != nil {
			t.Fatalf("Diff: %v", err)
		}
		got := encodeObject(t, base)
		for _, p := range [][]byte{encodeMetadata(t, changes), encodeStatus(t, changes)} {
			if p == nil {
				continue
			}
			if got, err = jsonpatch.MergePatch(got, p); err != nil {
				t.Fatalf("apply %s: %v", p, err)
			}
		}
		result := &unstructured.Unstructured{}
		if err := json.Unmarshal(got, &result.Object); err != nil {
			t.Fatalf("result: %v", err)
		}
		if want, got := normalize(t, wanted), normalize(t, result); !reflect.DeepEqual(want, got) { // cmp is slow for deep lists
			t.Errorf("patched base differs from wanted (-wanted +got):\n%s", cmp.Diff(want, got))
		}
		if again, err := itempatch.Diff(result, wanted); err != nil || !again.IsEmpty() {
			t.Errorf("Diff() after the patch = %v %v, %v, want nothing", again.Metadata, again.Status, err)
		}
	})
}

// FuzzForeign checks that the patches of Diff preserve the changes that another client made to other fields after the
// base was read.
func FuzzForeign(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a":{"c":[1]}}`), []byte(`{"x":null}`), "a/b")
	f.Add([]byte(`{}`), []byte(`{"a":null}`), []byte(`{"a":{"b":{}}}`), "")
	f.Add([]byte(`{"~":[{"a":1}]}`), []byte(`{"~":{}}`), []byte(`{"~":[1,{"a":null}]}`), "~1")
	f.Fuzz(func(t *testing.T, before, ours, theirs []byte, key string) {
		var was, we, they map[string]any
		if json.Unmarshal(before, &was) != nil || json.Unmarshal(ours, &we) != nil || json.Unmarshal(theirs, &they) != nil {
			return
		}
		thing := func(ours, theirs any, label string) *unstructured.Unstructured {
			body, _ := json.Marshal(map[string]any{"own": ours, "other": theirs, key + "-foreign": theirs})
			made, _ := newFuzzObject(body, map[string]any{"own": label, key + "-foreign": "x"}, []any{"a/b"})
			return made
		}
		base, wanted, stored := thing(was, was, "1"), thing(we, was, "2"), thing(was, they, "1")
		stored.SetAnnotations(map[string]string{key + "x": "theirs"})
		changes, err := itempatch.Diff(base, wanted)
		if err != nil {
			t.Fatalf("Diff: %v", err)
		}
		got, want := encodeObject(t, stored), thing(we, they, "2")
		want.SetAnnotations(map[string]string{key + "x": "theirs"})
		for _, p := range [][]byte{encodeMetadata(t, changes), encodeStatus(t, changes)} {
			if p == nil {
				continue
			}
			if got, err = jsonpatch.MergePatch(got, p); err != nil {
				t.Fatalf("apply %s: %v", p, err)
			}
		}
		result := &unstructured.Unstructured{}
		if err := json.Unmarshal(got, &result.Object); err != nil {
			t.Fatalf("result: %v", err)
		}
		if want, got := normalize(t, want), normalize(t, result); !reflect.DeepEqual(want, got) {
			t.Errorf("with foreign changes (-wanted +got):\n%s", cmp.Diff(want, got))
		}
	})
}

func newFuzzObject(status []byte, labels map[string]any, finalizers []any) (*unstructured.Unstructured, bool) {
	var value map[string]any
	if json.Unmarshal(status, &value) != nil {
		return nil, false
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "x", "resourceVersion": "1", "labels": labels, "finalizers": finalizers},
		"spec":     map[string]any{"a": "b"},
		"status":   value,
	}}, true
}

func encodeObject(t *testing.T, u *unstructured.Unstructured) []byte {
	t.Helper()
	data, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return data
}

// normalize returns the content of u without details that a merge patch cannot express. In the result, all numbers are
// floats, objects contain no nulls, and an empty status is absent.
func normalize(t *testing.T, u *unstructured.Unstructured) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal(encodeObject(t, u), &out); err != nil {
		t.Fatalf("normalise: %v", err)
	}
	removeNulls(out)
	if status, ok := out["status"].(map[string]any); ok && len(status) == 0 {
		delete(out, "status")
	}
	return out
}

func removeNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if member == nil {
				delete(v, key)
			}
			removeNulls(member)
		}
	case []any:
		for _, member := range v {
			removeNulls(member)
		}
	}
}
