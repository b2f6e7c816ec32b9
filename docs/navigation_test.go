// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestNavigation checks that the navigation of the site lists each guide once, and only files that exist.
func TestNavigation(t *testing.T) {
	t.Run("the navigation of the site lists each guide once [W1]", func(t *testing.T) {
		var groups []struct {
			Name  string
			Pages []struct{ File, Label string }
		}
		if err := yaml.UnmarshalStrict([]byte(read(t, "site/data/navigation.yaml")), &groups); err != nil {
			t.Fatal(err)
		}
		listed := map[string]int{}
		for _, group := range groups {
			if group.Name == "" || len(group.Pages) == 0 {
				t.Errorf("the group %q has no name or no pages", group.Name)
			}
			for _, page := range group.Pages {
				listed[page.File]++
				if _, err := os.Stat(filepath.Join(root, page.File)); err != nil {
					t.Errorf("the navigation lists %s: %v", page.File, err)
				}
			}
		}
		guides, err := filepath.Glob("*.md")
		if err != nil || len(guides) < 25 {
			t.Fatalf("found %d guides, error %v", len(guides), err)
		}
		for i := range guides {
			guides[i] = "docs/" + guides[i]
		}
		for _, file := range append(guides, "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/adr") {
			if listed[file] != 1 {
				t.Errorf("the navigation lists %s %d times, want once", file, listed[file])
			}
		}
	})
}

// TestDecisionRecordsHaveNumbers checks the first lines of the decision records, from which the site makes its list.
func TestDecisionRecordsHaveNumbers(t *testing.T) {
	records, err := filepath.Glob("adr/*.md")
	if err != nil || len(records) < 50 {
		t.Fatalf("found %d records, error %v", len(records), err)
	}
	for _, path := range records {
		number := filepath.Base(path)[:4]
		if number != "0000" && !regexp.MustCompile(`^# `+number+` \S`).MatchString(read(t, path)) {
			t.Errorf("%s does not begin with its number and its title", path)
		}
	}
}
