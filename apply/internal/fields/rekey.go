// SPDX-License-Identifier: Apache-2.0

package fields

import "maps"

// Rekey returns a copy of the live value in which the fields of the wanted value are set. Unlike Lay, it keeps the items
// of lists that the wanted value does not contain, and adds no items. If the lists at a path have an item with the same
// name, the item gets the fields of the wanted item, also those that identify it, such as the number of a port.
func Rekey(live, want any) any {
	switch want := want.(type) {
	case nil:
		return live
	case map[string]any:
		have, isMap := live.(map[string]any)
		if !isMap && live != nil {
			return live
		}
		out := map[string]any{}
		maps.Copy(out, have)
		for key, value := range want {
			if value = Rekey(have[key], value); value != nil {
				out[key] = value
			}
		}
		return out
	case []any:
		have, isList := live.([]any)
		if !isList {
			return want
		}
		out := make([]any, len(have))
		copy(out, have)
		for i, place := range partners(have, want) {
			out[place] = Rekey(have[place], want[i])
		}
		return out
	}
	if isSame(live, want) {
		return live
	}
	return want
}

// partners returns the positions of the live items that correspond to wanted items, by the positions of the wanted
// items. Items with the same name correspond. If both lists consist of one item without a name, these items correspond.
func partners(have, want []any) map[int]int {
	out := map[int]int{}
	there, haveNames := names(have)
	wanted, wantNames := names(want)
	switch {
	case haveNames && wantNames:
		for name, i := range wanted {
			if place, found := there[name]; found {
				out[i] = place
			}
		}
	case len(have) == 1 && len(want) == 1 && len(there)+len(wanted) == 0:
		out[0] = 0
	}
	return out
}
