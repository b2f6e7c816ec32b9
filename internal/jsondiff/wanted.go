// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"maps"
	"slices"
)

// MergeWanted returns a copy of the live value in which all fields of the wanted value are set. It ignores wanted
// fields whose value is null. If two values are equal in different forms, such as 1 and 1.0, the copy keeps the form of
// the live value.
func MergeWanted(live, want any) any { return wantedMerger{}.mergeValue(live, want) }

// MergeWantedByName returns a copy of the live value in which the fields of the wanted value are set. Unlike
// MergeWanted, it keeps the items of lists that the wanted value does not contain, and adds no items. If the lists at a
// path have an item with the same name, the item gets the fields of the wanted item, also those that identify it, such
// as the number of a port.
func MergeWantedByName(live, want any) any {
	return wantedMerger{keepItems: true}.mergeValue(live, want)
}

// wantedMerger implements MergeWanted and MergeWantedByName.
type wantedMerger struct{ keepItems bool }

func (l wantedMerger) mergeValue(live, want any) any {
	switch want := want.(type) {
	case nil:
		return live
	case map[string]any:
		have, isObject := live.(map[string]any)
		switch {
		case isObject || live == nil:
			return l.mergeObject(have, want)
		case l.keepItems:
			return live
		}
	case []any:
		if have, isList := live.([]any); isList || !l.keepItems {
			return l.mergeList(have, want)
		}
	}
	if Equal(live, want) {
		return live
	}
	return want
}

func (l wantedMerger) mergeObject(have, want map[string]any) any {
	out := map[string]any{}
	maps.Copy(out, have)
	for key, value := range want {
		if value = l.mergeValue(have[key], value); value != nil {
			out[key] = value
		}
	}
	if have == nil && len(out) == 0 && len(want) > 0 && !l.keepItems {
		return nil // the wanted object contains only null values
	}
	return out
}

func (l wantedMerger) mergeList(have, want []any) any {
	pair := matchItems
	if l.keepItems {
		pair = matchSomeItems
	}
	places, aligned := pair(have, want)
	if !aligned {
		return want
	}
	out := make([]any, len(have))
	copy(out, have)
	for i, place := range places {
		if place >= 0 {
			out[place] = l.mergeValue(have[place], want[i])
		}
	}
	return out
}

// FilterWanted returns a copy of the live value without the fields that the wanted value does not contain.
func FilterWanted(live, want any) any {
	switch want := want.(type) {
	case map[string]any:
		have, isObject := live.(map[string]any)
		if !isObject {
			return live
		}
		out := map[string]any{}
		for key, value := range want {
			if below, exists := have[key]; exists && value != nil {
				out[key] = FilterWanted(below, value)
			}
		}
		return out
	case []any:
		have, _ := live.([]any)
		places, aligned := matchItems(have, want)
		if !aligned {
			return live
		}
		out := make([]any, len(want))
		for i, place := range places {
			out[i] = FilterWanted(have[place], want[i])
		}
		return out
	}
	return live
}

// matchItems finds, for each item of the wanted list, the position of the corresponding item in the live list. If every
// item of both lists has a unique name, items with the same name correspond. Otherwise, items at the same position
// correspond. matchItems returns false if the lists differ in length or in the names of their items.
func matchItems(have, want []any) (places []int, aligned bool) {
	if len(have) != len(want) {
		return nil, false
	}
	places, named := matchByName(have, want)
	if named {
		return places, !slices.Contains(places, -1)
	}
	for i := range places {
		places[i] = i
	}
	return places, true
}

// matchSomeItems is like align, but accepts all lists. If a wanted item has no corresponding item, its position is -1.
// Items without a name correspond only if each list consists of one such item.
func matchSomeItems(have, want []any) (places []int, aligned bool) {
	places, named := matchByName(have, want)
	switch {
	case named:
		return places, true
	case len(have) == 1 && len(want) == 1:
		_, liveNamed := getName(have[0])
		_, wantedNamed := getName(want[0])
		if !liveNamed && !wantedNamed {
			return []int{0}, true
		}
	}
	return nil, true
}

// matchByName finds, for each item of the wanted list, the position of the live item with the same name, or -1. It
// returns false unless every item of both lists has a unique name.
func matchByName(have, want []any) (places []int, named bool) {
	live, liveNamed := indexNames(have)
	wanted, wantedNamed := indexNames(want)
	places = slices.Repeat([]int{-1}, len(want))
	for name, i := range wanted {
		if place, found := live[name]; found {
			places[i] = place
		}
	}
	return places, liveNamed && wantedNamed
}

// indexNames returns the position of each item of a list, by the item's name. It returns false unless every item has a
// unique name.
func indexNames(list []any) (map[string]int, bool) {
	out := make(map[string]int, len(list))
	for i, item := range list {
		if name, named := getName(item); named {
			out[name] = i
		}
	}
	return out, len(out) == len(list)
}

func getName(item any) (name string, named bool) {
	members, _ := item.(map[string]any)
	name, named = members["name"].(string)
	return name, named
}
