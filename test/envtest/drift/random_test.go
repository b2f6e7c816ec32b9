// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// random generates random objects and edits. It uses Ginkgo's seed, so that a failed spec can be repeated with the same
// values.
type random struct{ *rand.Rand }

func newRandom() random { return random{rand.New(rand.NewSource(GinkgoRandomSeed()))} }

// names contains keys with characters that JSON pointers or Go's JSON encoder escape.
var names = []string{"a", "b", "c~d", "e/f", "<g>", "h.i", "ü"}

// newTree returns a map with leaves at depths of one to four levels, and the JSON pointers of the leaves.
func (r random) newTree() (map[string]any, []string) {
	tree := map[string]any{}
	places := map[string]bool{}
	for range 1 + r.Intn(6) {
		r.addSubtree(tree, "/spec/free", 1+r.Intn(4), places)
	}
	return tree, slices.Sorted(maps.Keys(places))
}

func (r random) addSubtree(into map[string]any, place string, depth int, places map[string]bool) {
	name := names[r.Intn(len(names))]
	place += "/" + formatPointerToken(name)
	if depth > 1 {
		child, isMap := into[name].(map[string]any)
		if into[name] != nil && !isMap {
			return // a leaf is already at this place
		}
		if !isMap {
			child = map[string]any{}
			into[name] = child
		}
		r.addSubtree(child, place, depth-1, places)
		return
	}
	if into[name] == nil {
		into[name] = r.newLeaf()
		places[place] = true
	}
}

func (r random) newLeaf() any {
	return []any{fmt.Sprint("s", r.Intn(1000)), int64(r.Intn(1000)), r.Intn(2) == 0, []any{"x", int64(r.Intn(9))}}[r.Intn(4)]
}

// newPatch returns a JSON patch that removes a leaf or sets it to another value.
func (r random) newPatch(places []string) string {
	place := places[r.Intn(len(places))]
	if r.Intn(3) == 0 {
		return fmt.Sprintf(`[{"op":"remove","path":%q}]`, place)
	}
	value, err := json.Marshal([]any{"changed", 1.5, int64(-1), []any{}, map[string]any{"changed": "x"}}[r.Intn(5)])
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf(`[{"op":"replace","path":%q,"value":%s}]`, place, value)
}

func formatPointerToken(name string) string {
	out := ""
	for _, c := range name {
		switch c {
		case '~':
			out += "~0"
		case '/':
			out += "~1"
		default:
			out += string(c)
		}
	}
	return out
}
