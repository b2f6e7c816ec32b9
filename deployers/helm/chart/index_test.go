// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"testing"
)

func TestSelection(t *testing.T) {
	const versions = "{version: 1.0.0, urls: [a]}"
	for _, test := range []struct{ name, index, want, version string }{
		{"selects the exact text before a range", "entries:\n  test:\n  - version: 1.0.0+a\n  - version: 1.0.0\n  - version: 1.0.0+b\n", "1.0.0", "1.0.0"},
		{"selects the highest version in a range", "entries:\n  test:\n  - version: 1.0.0\n  - version: 1.10.0\n  - version: 1.9.0\n  - version: 2.0.0\n", "^1.0.0", "1.10.0"},
		{"selects no prerelease", "entries:\n  test:\n  - version: 1.0.0\n  - version: 1.1.0-rc.1\n", "*", "1.0.0"},
		{"selects a prerelease if the range contains one", "entries:\n  test:\n  - version: 1.0.0\n  - version: 1.1.0-rc.1\n", ">=1.0.0-0", "1.1.0-rc.1"},
		{"ignores versions that are not semantic", "entries:\n  test:\n  - version: latest\n  - version: 1.0.0\n", "*", "1.0.0"},
		{"reads an index in JSON format", `{"apiVersion":"v1","generated":{"a":[1,{}]},"entries":{"other":[{"version":"3.0.0"}],"test":[{"version":"1.0.0"},{"version":"1.2.0"}]}}`, "1.x", "1.2.0"},
		{"reads sequences that are indented", "entries:\n    test:\n        - version: 1.0.0\n          a:\n          - b\n        - version: 1.2.0\n    zoo:\n        - version: 1.3.0\n", "1.x", "1.2.0"},
		{"reads quoted names and comments", "# index\n---\n\"entries\": # all\n\n  # the chart\n  'test': # here\n  # first\n  - version: 1.0.0\n    description: |-\n      a\n\n      # b\n", "1.0.0", "1.0.0"},
		{"reads versions in flow style", "entries:\n  test:\n  - " + versions + "\n", "1.0.0", "1.0.0"},
		{"ignores later fields", "entries:\n  test:\n  - version: 1.0.0\nother:\n  test:\n  - version: 1.1.0\n", "1.x", "1.0.0"},
		{"ignores an entry with another name", "entries:\n  test:\n  - version: 1.0.0\n    name: other\n", "1.0.0", ""},
		{"finds nothing in an empty index", "apiVersion: v1\nentries: {}\n", "1.0.0", ""},
		{"finds nothing for another chart", "entries:\n  testing:\n  - version: 1.0.0\n  best:\n  - version: 1.0.0\n", "1.0.0", ""},
		{"accepts Windows line ends", "entries:\r\n  test:\r\n  - version: 1.0.0\r\n", "1.0.0", "1.0.0"},
	} {
		t.Run(test.name+" [E20]", func(t *testing.T) {
			s, err := newSelection("test", test.want)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.scan(strings.NewReader(test.index)); err != nil {
				t.Fatal(err)
			}
			got := ""
			if s.best != nil {
				got = s.best.Version
			}
			if got != test.version {
				t.Errorf("the version is %q, want %q", got, test.version)
			}
		})
	}
	for name, index := range map[string]string{
		"no index":         "a: b\n",
		"an empty file":    "",
		"invalid YAML":     "entries:\n  test:\n  - version: [\n",
		"an unknown alias": "entries:\n  test:\n  - *a\n",
		"flow style":       "entries: {test: [{version: 1.0.0}]}\n",
		"invalid JSON":     `{"entries":{"test":[}`,
		"JSON of another":  `{"entries":{"test":{}}}`,
		"a big version":    "entries:\n  test:\n  - version: 1.0.0\n" + strings.Repeat("    a: "+strings.Repeat("b", 1000)+"\n", 1100),
	} {
		t.Run("rejects "+name+" [Ex28]", func(t *testing.T) {
			s, err := newSelection("test", "1.0.0")
			if err != nil {
				t.Fatal(err)
			}
			fault, ok := errors.AsType[*Error](s.scan(strings.NewReader(index)))
			if !ok || !fault.Final {
				t.Errorf("the error is %v, want a final *Error", fault)
			}
		})
	}
}

func FuzzSelection(f *testing.F) {
	f.Add("entries:\n  test:\n  - version: 1.0.0\n")
	f.Add(`{"entries":{"test":[{"version":"1.0.0"}]}}`)
	f.Fuzz(func(t *testing.T, index string) {
		s, err := newSelection("test", "*")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.scan(strings.NewReader(index)); err != nil {
			if _, ok := errors.AsType[*Error](err); !ok && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %q, want one line", err)
			}
		}
	})
}
