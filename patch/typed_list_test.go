// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/patch"
)

// One of these Go types declares only some of the fields of the list items, and another one declares all fields. The
// tests make the same edits through both types.
type (
	knownPort struct {
		Name string `json:"name"`
		Port int    `json:"port,omitempty"`
	}
	fullPort struct {
		knownPort

		Extra string `json:"extra,omitempty"`
	}
	knownItem[P any] struct {
		Name  string `json:"name,omitempty"`
		ID    string `json:"id,omitempty"`
		Image string `json:"image,omitempty"`
		Count int    `json:"count,omitempty"`
		Ports []P    `json:"ports,omitempty"`
	}
	fullItem struct {
		knownItem[fullPort]

		Extra string         `json:"extra,omitempty"`
		Deep  map[string]any `json:"deep,omitempty"`
	}
	named[I any] struct {
		Items []I `json:"items,omitempty"`
	}
	tagged[I any] struct {
		Items []I `json:"items,omitempty" patchMergeKey:"id"`
	}
)

// step is one edit of a list of items.
type step struct {
	op   string
	i, j int
	text string
}

func run[I, P any](items []I, known func(*I) *knownItem[P], fresh func(string) I, steps []step) []I {
	for _, s := range steps {
		switch s.op {
		case "change":
			known(&items[s.i]).Image = s.text
		case "swap":
			items[s.i], items[s.j] = items[s.j], items[s.i]
		case "remove":
			items = slices.Delete(items, s.i, s.i+1)
		case "insert":
			items = slices.Insert(items, s.i, fresh(s.text))
		case "reverse":
			slices.Reverse(items)
		}
	}
	return items
}

var listEdits = map[string][]step{
	"change an item":                       {{op: "change", i: 1, text: "x"}},
	"append an item":                       {{op: "insert", i: 4, text: "new"}},
	"insert an item":                       {{op: "insert", i: 0, text: "new"}},
	"remove an item":                       {{op: "remove", i: 1}},
	"change all items":                     {{op: "change", i: 0, text: "x"}, {op: "change", i: 1, text: "y"}, {op: "change", i: 2, text: "z"}, {op: "change", i: 3, text: "v"}},
	"change an item and append another":    {{op: "change", i: 0, text: "x"}, {op: "insert", i: 4, text: "new"}},
	"insert an item before a changed item": {{op: "change", i: 1, text: "x"}, {op: "insert", i: 1, text: "new"}},
	"remove an item and change the next":   {{op: "change", i: 2, text: "x"}, {op: "remove", i: 1}},
	"swap two items":                       {{op: "swap", i: 0, j: 2}},
	"reverse the list":                     {{op: "reverse"}},
	"remove two items and append another":  {{op: "remove", i: 0}, {op: "remove", i: 0}, {op: "insert", i: 2, text: "new"}},
	"swap and change two items":            {{op: "swap", i: 0, j: 2}, {op: "change", i: 0, text: "x"}, {op: "change", i: 2, text: "y"}},
}

func TestTypedLists(t *testing.T) {
	identity := func(name string) knownItem[fullPort] { return knownItem[fullPort]{Name: name} }
	byID := func(name string) knownItem[fullPort] { return knownItem[fullPort]{ID: name, Name: "the same"} }
	// Items without a key are identified by their common content.
	alone := func(name string) knownItem[fullPort] {
		return knownItem[fullPort]{Count: len(name)*1000 + int(name[0])}
	}
	for name, steps := range listEdits {
		t.Run(name+": fields that the type does not declare are kept [F14]", func(t *testing.T) {
			check[named[knownItem[knownPort]], named[fullItem]](t, "by name", identity, steps)
			check[tagged[knownItem[knownPort]], tagged[fullItem]](t, "by patchMergeKey", byID, steps)
			check[named[knownItem[knownPort]], named[fullItem]](t, "by known fields", alone, steps)
		})
	}
}

func TestTypedListsOfItemsWithoutKey(t *testing.T) {
	list := func(items ...map[string]any) map[string]any {
		out := []any{}
		for _, item := range items {
			out = append(out, item)
		}
		return map[string]any{"items": out}
	}
	first := map[string]any{"image": "a", "extra": "A"}
	second := map[string]any{"image": "b", "extra": "B"}
	for name, tc := range map[string]struct {
		edit func([]knownItem[knownPort]) []knownItem[knownPort]
		want map[string]any
	}{
		"an item that gets a key": {
			func(items []knownItem[knownPort]) []knownItem[knownPort] { items[1].Name = "new"; return items },
			list(first, map[string]any{"image": "b", "extra": "B", "name": "new"}),
		},
		"an item that moves behind a new one with a key": {
			func(items []knownItem[knownPort]) []knownItem[knownPort] {
				return append([]knownItem[knownPort]{{Name: "new", Image: "c"}}, items...)
			},
			list(map[string]any{"image": "c", "name": "new"}, first, second),
		},
	} {
		t.Run(name+": fields that the type does not declare are kept [F14]", func(t *testing.T) {
			p := &patch.Patch{}
			p.Append(patch.Typed(func(l *named[knownItem[knownPort]]) error { l.Items = tc.edit(l.Items); return nil }))
			if diff := cmp.Diff(tc.want, applyTo(t, p, list(first, second))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// check performs the steps through the types H and F, and compares the results. The function `identify` creates the
// item with the given name.
func check[H named[knownItem[knownPort]] | tagged[knownItem[knownPort]], F named[fullItem] | tagged[fullItem]](
	t *testing.T, how string, identify func(string) knownItem[fullPort], steps []step,
) {
	t.Helper()
	items := []fullItem{}
	for _, name := range []string{"a", "b", "c", "d"} {
		item := fullItem{knownItem: identify(name), Extra: "of " + name, Deep: map[string]any{"a": name}}
		item.Image = "image of " + name
		items = append(items, item)
	}
	stored := newBody(t, named[fullItem]{Items: slices.Clone(items)})
	full := run(items, func(i *fullItem) *knownItem[fullPort] { return &i.knownItem },
		func(name string) fullItem { return fullItem{knownItem: identify(name)} }, steps)
	p := &patch.Patch{}
	p.Append(patch.Typed(func(h *H) error {
		list := named[knownItem[knownPort]](*h)
		list.Items = run(list.Items, func(i *knownItem[knownPort]) *knownItem[knownPort] { return i },
			func(name string) knownItem[knownPort] {
				item := identify(name)
				return knownItem[knownPort]{Name: item.Name, ID: item.ID, Image: item.Image, Count: item.Count}
			}, steps)
		*h = H(list)
		return nil
	}))
	if diff := cmp.Diff(normalizeNumbers(t, newBody(t, named[fullItem]{Items: full})), normalizeNumbers(t, applyTo(t, p, stored))); diff != "" {
		t.Errorf("%s (-edited in full +edited in part):\n%s", how, diff)
	}
}

// newBody returns a value as a body of plain JSON values.
func newBody(t *testing.T, value any) map[string]any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	p := &patch.Patch{}
	return applyTo(t, p, object(t, string(data)))
}

// editItems makes random edits of items that have names, and of the ports of the items.
func editItems[I, P any](r *rand.Rand, items []I, item func(*I) *knownItem[P], port func(*P) *knownPort) []I {
	for range 1 + r.IntN(4) {
		kind, n := r.IntN(8), len(items)
		if n == 0 {
			kind = 0
		}
		switch kind {
		case 0:
			items = slices.Insert(items, r.IntN(n+1), *new(I))
			for i := range items {
				if known := item(&items[i]); known.Name == "" {
					known.Name = fmt.Sprint("new-", r.Uint32())
				}
			}
		case 1:
			i := r.IntN(n)
			items = slices.Delete(items, i, i+1)
		case 2:
			i, j := r.IntN(n), r.IntN(n)
			items[i], items[j] = items[j], items[i]
		case 3:
			item(&items[r.IntN(n)]).Image = fmt.Sprint(r.IntN(3))
		case 4:
			item(&items[r.IntN(n)]).Count = r.IntN(2)
		case 5:
			slices.Reverse(items)
		default:
			known := item(&items[r.IntN(n)])
			switch m := len(known.Ports); {
			case m == 0 || r.IntN(3) == 0:
				known.Ports = slices.Insert(known.Ports, r.IntN(m+1), *new(P))
				for i := range known.Ports {
					if p := port(&known.Ports[i]); p.Name == "" {
						p.Name = fmt.Sprint("port-", r.Uint32())
					}
				}
			case r.IntN(2) == 0:
				port(&known.Ports[r.IntN(m)]).Port = r.IntN(3)
			default:
				i := r.IntN(m)
				known.Ports = slices.Delete(known.Ports, i, i+1)
			}
		}
	}
	return items
}

// typedSequence makes the same random edits of a list through a type that declares half of the fields and through a
// type that declares all fields.
func typedSequence(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 14))
	items := []fullItem{}
	for i := range r.IntN(6) {
		item := fullItem{Extra: fmt.Sprint("extra-", i), Deep: map[string]any{"list": []any{"x", i}}}
		item.Name, item.Image = fmt.Sprint("item-", i), fmt.Sprint(r.IntN(3))
		for j := range r.IntN(4) {
			item.Ports = append(item.Ports, fullPort{knownPort{fmt.Sprint("port-", j), r.IntN(3)}, fmt.Sprint("extra-", i, j)})
		}
		items = append(items, item)
	}
	stored := newBody(t, named[fullItem]{Items: items})
	full := editItems(rand.New(rand.NewPCG(seed, 0)), items,
		func(i *fullItem) *knownItem[fullPort] { return &i.knownItem }, func(p *fullPort) *knownPort { return &p.knownPort })
	p := &patch.Patch{}
	p.Append(patch.Typed(func(h *named[knownItem[knownPort]]) error {
		h.Items = editItems(rand.New(rand.NewPCG(seed, 0)), h.Items,
			func(i *knownItem[knownPort]) *knownItem[knownPort] { return i }, func(p *knownPort) *knownPort { return p })
		return nil
	}))
	if diff := cmp.Diff(normalizeNumbers(t, newBody(t, named[fullItem]{Items: full})), normalizeNumbers(t, applyTo(t, p, stored))); diff != "" {
		t.Fatalf("seed %d (-edited in full +edited in part):\n%s", seed, diff)
	}
}

// FuzzTyped makes random edits of nested lists through a type that declares half of the fields.
func FuzzTyped(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(typedSequence)
}
