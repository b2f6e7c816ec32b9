// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
)

// countSequences returns the number of random sequences to run. The command "make fuzz" runs 100 000 sequences.
func countSequences(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("DEPLOYERKIT_SEQUENCES")
	if text == "" {
		return 2000
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("DEPLOYERKIT_SEQUENCES: %v", err)
	}
	return n
}

// merged applies a JSON merge patch (RFC 7386), except that a deletion below an absent member creates nothing.
func merged(base any, overlay map[string]any) map[string]any {
	out := map[string]any{}
	if object, isObject := base.(map[string]any); isObject {
		maps.Copy(out, object)
	}
	for key, change := range overlay {
		inner, isObject := change.(map[string]any)
		_, exists := out[key].(map[string]any)
		switch {
		case change == nil:
			delete(out, key)
		case !isObject:
			out[key] = change
		case exists || !onlyDeletes(inner):
			out[key] = merged(out[key], inner)
		}
	}
	return out
}

func onlyDeletes(overlay map[string]any) bool {
	for _, change := range overlay {
		if inner, isObject := change.(map[string]any); change != nil && (!isObject || !onlyDeletes(inner)) {
			return false
		}
	}
	return len(overlay) > 0
}

// randomEdit returns a function that makes the same random changes in every copy of a body.
func randomEdit(seed uint64) patch.Func {
	return func(body map[string]any) error {
		for _, part := range []string{"spec", "status"} {
			members := getOrCreateObject(body, part)
			for i, key := range strangeKeys {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				if r.IntN(4) > 0 {
					continue
				}
				list, isList := members[key].([]any)
				switch {
				case isList && len(list) > 0 && r.IntN(2) == 0:
					at := r.IntN(len(list))
					members[key] = append(append([]any{}, list[:at]...), list[at+1:]...)
				case isList:
					members[key] = append(append([]any{}, list...), randomValue(r, 1))
				case r.IntN(3) == 0:
					delete(members, key)
				default:
					members[key] = randomValue(r, 2)
				}
			}
		}
		return nil
	}
}

// runSequence applies random patches to one object while other clients write to it. The stored object must be equal to
// the result of an independent implementation of the same changes.
func runSequence(t *testing.T, seed uint64, kinds client.Client) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 22))
	s := &server{Client: kinds, body: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Gadget",
		"metadata": map[string]any{"name": "web", "namespace": "default", "uid": "first", "resourceVersion": "7"},
	}}
	s.apart = r.IntN(2) == 0
	for _, part := range []string{"spec", "status"} {
		s.body[part] = normalizeNumbers(t, randomObject(r, 3))
	}
	form := s.raw
	if r.IntN(2) == 0 {
		form = s.typed // the Go type declares none of the random fields
	}
	obj := form()
	for range 1 + r.IntN(3) {
		if r.IntN(3) == 0 {
			other := randomEdit(r.Uint64())
			s.applyChange(func(body map[string]any) {
				if err := other(body); err != nil {
					t.Fatal(err)
				}
				s.body = normalizeNumbers(t, body).(map[string]any)
			})
			obj = form() // merge changes are compared with the object that is passed to Apply
			if r.IntN(2) == 0 {
				s.incrementVersion()
			}
		}
		p, want := &patch.Patch{}, s.body
		if r.IntN(3) > 0 {
			overlay := map[string]any{}
			for _, part := range []string{"spec", "status"} {
				changes := randomObject(r, 2)
				for key, value := range changes {
					p.Body().In(part).Set(key, value)
					changes[key], _ = p.Body().In(part).Get(key) // the value without nulls in lists, which the API server drops
				}
				if len(changes) > 0 {
					overlay[part] = changes
				}
			}
			want = merged(want, overlay)
		}
		if r.IntN(2) == 0 {
			fn := randomEdit(r.Uint64())
			p.Append(fn)
			want = normalizeNumbers(t, want).(map[string]any)
			if err := fn(want); err != nil {
				t.Fatal(err)
			}
		}
		result := apply(t, p, s, obj, patch.WithStatusSubresource(s.apart))
		for _, part := range []string{"spec", "status"} {
			if diff := cmp.Diff(normalizeNumbers(t, want[part]), normalizeNumbers(t, s.body[part])); diff != "" {
				t.Fatalf("seed %d: %s (-oracle +stored):\n%s\n%v", seed, part, diff, s.requests)
			}
		}
		if n := len(result.Calls); n > 2*result.Attempts {
			t.Fatalf("seed %d: %d calls in %d attempts", seed, n, result.Attempts)
		}
	}
}

func TestRandomSequences(t *testing.T) {
	t.Run("random merge changes and functions store what an independent implementation computes, for typed and unstructured objects [F15, F16, F17]", func(t *testing.T) {
		kinds := newKinds() // created once, because this takes longer than a sequence
		n := countSequences(t)
		for seed := range n {
			runSequence(t, seed, kinds)
		}
		t.Logf("execs: %d", n) // for hack/fuzz.sh
	})
	t.Run("a type with half of the fields yields the same edits as a type with all fields [F14]", func(t *testing.T) {
		n := countSequences(t)
		for seed := range n {
			typedSequence(t, seed)
		}
		t.Logf("execs: %d", n)
	})
}
