// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Lay returns a copy of the live value in which all fields of the wanted value are set. It ignores wanted fields whose
// value is null. If two values are equal in different forms, such as 1 and 1.0, the copy keeps the form of the live
// value.
func Lay(live, want any) any {
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
			out[place] = Lay(have[place], want[i])
		}
		return out
	}
	if isSame(live, want) {
		return live
	}
	return want
}

func layFields(have, want map[string]any) any {
	out := map[string]any{}
	maps.Copy(out, have)
	for key, value := range want {
		if value = Lay(have[key], value); value != nil {
			out[key] = value
		}
	}
	if have == nil && len(out) == 0 && len(want) > 0 {
		return nil // the wanted object contains only null values
	}
	return out
}

// Cut returns a copy of the live value without the fields that the wanted value does not contain.
func Cut(live, want any) any {
	switch want := want.(type) {
	case map[string]any:
		have, isMap := live.(map[string]any)
		if !isMap {
			return live
		}
		out := map[string]any{}
		for key, value := range want {
			if below, exists := have[key]; exists && value != nil {
				out[key] = Cut(below, value)
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
			out[i] = Cut(have[place], want[i])
		}
		return out
	}
	return live
}

// align finds, for each item of the wanted list, the position of the corresponding item in the live list. If every item
// of both lists has a unique name, items with the same name correspond. Otherwise, items at the same position
// correspond. align returns false if the lists differ in length or in the names of their items.
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

// names returns the position of each item of a list, by the item's name. It returns false unless every item has a
// unique name.
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

// isSame reports whether two values other than maps and lists are equal. It treats 1 and 1.0 as equal.
func isSame(a, b any) bool {
	x, isNumber := Number(a)
	y, isToo := Number(b)
	if isNumber && isToo {
		return x == y
	}
	return equality.Semantic.DeepEqual(a, b)
}

// Number converts a decoded number to float64. It returns false if the value is not a number.
func Number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
