// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"regexp"
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
		"prefixed [R36]":               {"shop", []string{"web"}, "shop-web", "shop-web"},
		"several parts [R36]":          {"shop", []string{"web", "0"}, "shop-web-0", "shop-web-0"},
		"alone [R36]":                  {"shop", nil, "shop", "shop"},
		"dots are not for all [R36]":   {"shop.eu", []string{"web"}, "shop-eu-web-150f450a", "shop.eu-web"},
		"digits first [R36]":           {"1shop", []string{"web"}, "x1shop-web-ea12b753", "1shop-web"},
		"too long [R36]":               {long, []string{"web"}, strings.Repeat("a", 54) + "-59de9056", long + "-web"},
		"far too long [R36]":           {strings.Repeat(long, 4), []string{"web"}, strings.Repeat("a", 54) + "-c240ef93", strings.Repeat("a", 244) + "-c240ef93"},
		"letters and signs [R36]":      {"shop", []string{"Web_1"}, "shop-web-1-e7ce5ca7", "shop-web-1-e7ce5ca7"},
		"nothing that is left [R36]":   {"", nil, "x-e3b0c442", "x-e3b0c442"},
		"a hyphen is not at the end":   {"shop", []string{""}, "shop-3f992105", "shop-3f992105"},
		"labels of a long name [R36]":  {"a.-b..c", nil, "a--b--c-a1c2914c", "a.b.x.c-a1c2914c"},
		"the same whole, another name": {"shop-eu", []string{"web"}, "shop-eu-web", "shop-eu-web"},
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
