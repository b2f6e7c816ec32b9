// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	entry  = regexp.MustCompile(`^- \[.*\]\(#([^)\s]+)\)`)
	inline = regexp.MustCompile("`[^`]*`")
)

// FindBrokenLinks returns the relative links of a markdown file whose destination does not exist. The destination is a
// file or a heading of a markdown file. Links with a scheme are not checked.
func FindBrokenLinks(path string) ([]string, error) {
	doc, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var broken []string
	for _, line := range listTextLines(string(doc)) {
		for _, match := range link.FindAllStringSubmatch(inline.ReplaceAllString(line, ""), -1) {
			if dest := match[1]; !strings.Contains(dest, ":") && !linkExists(path, dest) {
				broken = append(broken, dest)
			}
		}
	}
	return broken, nil
}

// FindUnlisted returns the headings of the second level that are missing in the table of contents of a document. A
// table of contents is a list of links to headings of the same document.
func FindUnlisted(doc string) []string {
	var headings []string
	listed := map[string]bool{}
	for _, line := range listTextLines(doc) {
		if heading, found := strings.CutPrefix(line, "## "); found {
			headings = append(headings, heading)
		}
		if match := entry.FindStringSubmatch(line); match != nil {
			listed[match[1]] = true
		}
	}
	if len(listed) == 0 {
		return nil
	}
	return slices.DeleteFunc(headings, func(heading string) bool { return listed[toAnchor(heading)] })
}

// linkExists reports whether the destination of a link exists. from is the file that contains the link.
func linkExists(from, dest string) bool {
	file, anchor, _ := strings.Cut(dest, "#")
	target := from
	if file != "" {
		target = filepath.Join(filepath.Dir(from), filepath.FromSlash(file))
	}
	if anchor == "" || !strings.HasSuffix(target, ".md") {
		_, err := os.Stat(target)
		return err == nil
	}
	doc, err := os.ReadFile(target)
	if err != nil {
		return false
	}
	for _, line := range listTextLines(string(doc)) {
		if strings.HasPrefix(line, "#") && toAnchor(strings.TrimLeft(line, "# ")) == anchor {
			return true
		}
	}
	return false
}

// toAnchor returns the anchor that GitHub generates for a heading.
func toAnchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// listTextLines returns the lines of a document that are not in code blocks.
func listTextLines(doc string) []string {
	var lines []string
	inCode := false
	for line := range strings.SplitSeq(doc, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
			continue
		}
		if !inCode {
			lines = append(lines, line)
		}
	}
	return lines
}
