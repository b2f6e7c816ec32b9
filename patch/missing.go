// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"maps"
	"slices"
)

// missing returns the paths of what was changed from base to wanted and is not in answer. A zero value need
// not be stored, and a value that became another one (defaults, admission) is there.
func missing(path string, base, wanted, answer map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		want := wanted[key]
		at := joinPath(path, pathElement(key))
		have, existed := base[key]
		stored, exists := answer[key]
		switch {
		case existed && equal(have, want) || isZero(want):
		case !exists:
			out = append(out, at)
		default:
			out = append(out, missingBelow(at, have, want, stored)...)
		}
	}
	return out
}

func missingBelow(path string, base, want, stored any) []string {
	switch wanted := want.(type) {
	case map[string]any:
		have, _ := base.(map[string]any)
		if answer, ok := stored.(map[string]any); ok {
			return missing(path, have, wanted, answer)
		}
	case []any:
		answer, ok := stored.([]any)
		if !ok || len(answer) != len(wanted) {
			return nil // others may have changed it, so items cannot be compared
		}
		var out []string
		for i := range wanted {
			out = append(out, missingBelow(joinPath(path, fmt.Sprintf("[%d]", i)), nil, wanted[i], answer[i])...)
		}
		return out
	}
	return nil
}
