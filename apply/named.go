// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// readsFirst reports whether the strategy of the object reads it before it writes. See replace.
func (o *object) readsFirst() bool {
	switch o.Strategy {
	case Update, Patch, Merge, MergeOverwrite:
		return true
	case Apply, Recreate, OnDelete:
	}
	return false
}

// becomes returns what a live object is to become. The strategy applies in full only once for each change of the
// manifest. After that, only the fields that the manifest names are compared, and what others add to a written object
// stays.
func (o *object) becomes(s *slot, live *unstructured.Unstructured) *unstructured.Unstructured {
	if s.UID != live.GetUID() || s.Hash != o.hash {
		return outcome(o, live)
	}
	if s.Norm != "" && s.Norm == o.norm(live) {
		return live
	}
	return o.laidOver(live)
}

// laidOver returns the live object with the fields that the manifest names.
func (o *object) laidOver(live *unstructured.Unstructured) *unstructured.Unstructured {
	want := o.Object
	switch o.Strategy {
	case Merge:
		want = outcome(o, live)
	case Apply, Recreate, OnDelete, Update, Patch, MergeOverwrite:
		want = want.DeepCopy()
		retain(want, live)
	}
	out, _ := lay(live.Object, want.Object).(map[string]any)
	return &unstructured.Unstructured{Object: out}
}

// normOf returns the norm of the stored object if it differs from the manifest, for example because the API server
// rewrote a quantity, dropped a zero, or called a webhook that changes a field. It returns "" if the object matches
// the manifest.
func (o *object) normOf(stored *unstructured.Unstructured) string {
	if !o.readsFirst() || equality.Semantic.DeepEqual(o.laidOver(stored).Object, stored.Object) {
		return ""
	}
	return o.norm(stored)
}

// norm returns a hash of a live object's values in the fields that the manifest names.
func (o *object) norm(live *unstructured.Unstructured) string {
	data, err := json.Marshal(cut(live.Object, o.Object.Object))
	if err != nil {
		return "" // cannot happen because the object was decoded from JSON
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// lay returns live with the fields that want names. Values that are equal stay as they are, and null names no field.
func lay(live, want any) any {
	switch want := want.(type) {
	case nil:
		return live
	case map[string]any:
		have, isMap := live.(map[string]any)
		if !isMap && live != nil {
			return want
		}
		return layFields(have, want)
	case []any:
		have, _ := live.([]any)
		places, aligned := align(have, want)
		if !aligned {
			return want
		}
		out := make([]any, len(have))
		for i, place := range places {
			out[place] = lay(have[place], want[i])
		}
		return out
	}
	if isSame(live, want) {
		return live
	}
	return want
}

func layFields(have, want map[string]any) any {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range want {
		if value = lay(have[key], value); value != nil {
			out[key] = value
		}
	}
	if have == nil && len(out) == 0 && len(want) > 0 {
		return nil // nothing but null
	}
	return out
}

// cut returns the part of live that want names.
func cut(live, want any) any {
	switch want := want.(type) {
	case map[string]any:
		have, isMap := live.(map[string]any)
		if !isMap {
			return live
		}
		out := map[string]any{}
		for key, value := range want {
			if below, exists := have[key]; exists && value != nil {
				out[key] = cut(below, value)
			}
		}
		return out
	case []any:
		have, _ := live.([]any)
		places, aligned := align(have, want)
		if !aligned {
			return live
		}
		out := make([]any, len(want))
		for i, place := range places {
			out[i] = cut(have[place], want[i])
		}
		return out
	}
	return live
}

// align finds for each wanted item the item of the live list that it is compared with. Items are matched by name if
// all of them have unique names, and by position otherwise. It returns false if the lists have different items.
func align(have, want []any) (places []int, aligned bool) {
	if len(have) != len(want) {
		return nil, false
	}
	places = make([]int, len(want))
	there, haveNames := names(have)
	wanted, wantNames := names(want)
	if !haveNames || !wantNames {
		for i := range places {
			places[i] = i
		}
		return places, true
	}
	for name, i := range wanted {
		place, found := there[name]
		if !found {
			return nil, false
		}
		places[i] = place
	}
	return places, true
}

// names returns the positions of the items of a list by name, and false if not all of them have a unique name.
func names(list []any) (map[string]int, bool) {
	out := make(map[string]int, len(list))
	for i, item := range list {
		fields, _ := item.(map[string]any)
		if name, named := fields["name"].(string); named {
			out[name] = i
		}
	}
	return out, len(out) == len(list)
}

// isSame compares values that are not maps or lists. It treats 1 and 1.0 as equal.
func isSame(a, b any) bool {
	x, isNumber := number(a)
	y, isToo := number(b)
	if isNumber && isToo {
		return x == y
	}
	return equality.Semantic.DeepEqual(a, b)
}

func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
