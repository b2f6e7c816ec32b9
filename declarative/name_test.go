// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	long := strings.Repeat("a", 70)
	for name, tc := range map[string]struct {
		item            string
		parts           []string
		label, longName string
	}{
		"one part [R36]":                           {"shop", []string{"web"}, "shop-web", "shop-web"},
		"several parts [F77]":                      {"shop", []string{"web", "0"}, "shop-web-0-82d7e900", "shop-web-0-82d7e900"},
		"a part with a hyphen [F77]":               {"shop", []string{"db-web"}, "shop-db-web-de19f020", "shop-db-web-de19f020"},
		"an item with hyphens [F77]":               {"shop-db", []string{"web"}, "shop-db-web", "shop-db-web"},
		"an item with a hyphen and no parts [F77]": {"shop-db", nil, "shop-db-65b64015", "shop-db-65b64015"},
		"a part that looks like a hash [F77]":      {"shop-web", []string{"150f450a"}, "shop-web-150f450a-266a6bac", "shop-web-150f450a-266a6bac"},
		"no parts [R36]":                           {"shop", nil, "shop", "shop"},
		"an item with a dot [R36]":                 {"shop.eu", []string{"web"}, "shop-eu-web-150f450a", "shop.eu-web"},
		"an item that starts with a digit [R36]":   {"1shop", []string{"web"}, "x1shop-web-ea12b753", "1shop-web"},
		"a long item [R36]":                        {long, []string{"web"}, strings.Repeat("a", 54) + "-59de9056", long + "-web"},
		"a very long item [R36]":                   {strings.Repeat(long, 4), []string{"web"}, strings.Repeat("a", 54) + "-c240ef93", strings.Repeat("a", 244) + "-c240ef93"},
		"a part with capitals and signs [R36]":     {"shop", []string{"Web_1"}, "shop-web-1-e7ce5ca7", "shop-web-1-e7ce5ca7"},
		"an empty item [R36]":                      {"", nil, "x-e3b0c442", "x-e3b0c442"},
		"an empty part":                            {"shop", []string{""}, "shop-3f992105", "shop-3f992105"},
		"an item with dots and hyphens [R36]":      {"a.-b..c", nil, "a--b--c-4c55116d", "a.b.x.c-4c55116d"},
		"an item with a hyphen and a part":         {"shop-eu", []string{"web"}, "shop-eu-web", "shop-eu-web"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Name(tc.item, tc.parts...); got != tc.label {
				t.Errorf("Name gave %q, want %q", got, tc.label)
			}
			if got := LongName(tc.item, tc.parts...); got != tc.longName {
				t.Errorf("LongName gave %q, want %q", got, tc.longName)
			}
		})
	}
}

// newParts returns a random list of at most three short parts of names, in which collisions are likely.
func newParts(r *rand.Rand) []string {
	out := make([]string, r.IntN(4))
	for i := range out {
		for range r.IntN(4) {
			out[i] += string("ab-.A"[r.IntN(5)])
		}
	}
	return out
}

func TestNamesOfItemsDiffer(t *testing.T) {
	t.Run("names of different items and parts differ [F77]", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not for secrets
		for _, name := range []func(string, ...string) string{Name, LongName} {
			taken := map[string][]string{}
			for range 20_000 {
				tuple := append([]string{strings.Repeat("a", 1+r.IntN(2)) + strings.Join(newParts(r), "-")}, newParts(r)...)
				got := name(tuple[0], tuple[1:]...)
				if other, found := taken[got]; found && !slices.Equal(other, tuple) {
					t.Fatalf("%q and %q both have the name %q", other, tuple, got)
				}
				taken[got] = tuple
			}
		}
	})
	t.Run("the hash of one item is not valid as a part of another [F77]", func(t *testing.T) {
		hashed := Name("shop", "db-web")
		if got := Name("shop-db-web", strings.TrimPrefix(hashed, "shop-db-web-")); got == hashed {
			t.Errorf("two items have the name %q", got)
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add("shop", "web")
	f.Add("a.-.", "-")
	f.Add("Ünicode\x00", "")
	f.Add("AA0A", "A")
	label := regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	subdomain := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	f.Fuzz(func(t *testing.T, item, part string) {
		if got := Name(item, part); !label.MatchString(got) {
			t.Errorf("Name(%q, %q) = %q", item, part, got)
		}
		if got := LongName(item, part); !subdomain.MatchString(got) || len(got) > 253 {
			t.Errorf("LongName(%q, %q) = %q", item, part, got)
		}
	})
}
