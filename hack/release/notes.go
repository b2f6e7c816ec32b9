// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeNotes writes the section of the version in CHANGELOG.md, or the section Unreleased if there is none yet, to the
// file release-notes.md.
func (r repository) writeNotes(version, dir string) error {
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	section, err := findSection(string(changelog), version)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // to be published
		return err
	}
	return os.WriteFile(filepath.Join(dir, "release-notes.md"), []byte(section), 0o644) //nolint:gosec // to be published
}

// findSection returns the content of the section of the version, without its heading.
func findSection(changelog, version string) (string, error) {
	sections := map[string]*strings.Builder{}
	var current *strings.Builder
	lines := bufio.NewScanner(strings.NewReader(changelog))
	lines.Buffer(nil, len(changelog)+1)
	for lines.Scan() {
		if heading, found := strings.CutPrefix(lines.Text(), "## "); found {
			name, _, _ := strings.Cut(strings.Trim(heading, "[]"), " ")
			current = &strings.Builder{}
			sections[strings.TrimSuffix(name, "]")] = current
			continue
		}
		if current != nil {
			fmt.Fprintln(current, lines.Text())
		}
	}
	for _, name := range []string{version, strings.TrimPrefix(version, "v"), "Unreleased"} {
		if section, found := sections[name]; found && strings.TrimSpace(section.String()) != "" {
			return strings.TrimSpace(section.String()) + "\n", nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section %s and no section Unreleased with content", version)
}

// writeChecksums writes the SHA-256 of each file in dir and its subdirectories to checksums.txt, in the format of the
// program sha256sum. The files that sign the checksums are not included.
func writeChecksums(dir string) error {
	var lines []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		name, relative := filepath.Rel(dir, path)
		if err != nil || relative != nil || entry.IsDir() || name == "checksums.txt" || strings.HasSuffix(name, ".sigstore.json") {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a file of the release
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), filepath.ToSlash(name)))
		return nil
	})
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		return fmt.Errorf("%s contains no files", dir)
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(strings.Join(lines, "")), 0o644) //nolint:gosec // to be published
}
