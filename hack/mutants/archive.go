// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// load reads the mutants from all archives in a directory. It returns the mutants whose names match, sorted by name.
func load(dir string, selected *regexp.Regexp) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	var out []mutant
	for _, path := range paths {
		mutants, err := loadArchive(path)
		if err != nil {
			return nil, err
		}
		out = append(out, mutants...)
	}
	slices.SortFunc(out, func(a, b mutant) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(out); i++ {
		if out[i].name == out[i-1].name {
			return nil, fmt.Errorf("two mutants have the name %s", out[i].name)
		}
	}
	out = slices.DeleteFunc(out, func(m mutant) bool { return !selected.MatchString(m.name) })
	if len(out) == 0 {
		return nil, fmt.Errorf("no mutant in %s matches %q", dir, selected)
	}
	return out, nil
}

// loadArchive reads all mutants of one archive.
func loadArchive(path string) ([]mutant, error) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return nil, fmt.Errorf("read mutants: %w", err)
	}
	if len(archive.Comment) > 0 {
		return nil, fmt.Errorf("%s does not begin with a line `-- name --`", path)
	}
	out := make([]mutant, 0, len(archive.Files))
	for _, entry := range archive.Files {
		m, err := parse(entry.Name, entry.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: mutant %s: %w", path, entry.Name, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// getArchivePath returns the path of the archive that contains the mutant. Each archive has the name of a top-level
// directory of the repository.
func (m mutant) getArchivePath(dir string) string {
	top, _, _ := strings.Cut(m.edits[0].dir, "/")
	return filepath.Join(dir, top+".txtar")
}

// store writes a mutant to its archive. It replaces a mutant of the same name, and keeps the archive sorted.
func store(dir string, m mutant) error {
	path := m.getArchivePath(dir)
	archive, err := txtar.ParseFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		archive, err = &txtar.Archive{}, nil
	}
	if err != nil {
		return fmt.Errorf("read mutants: %w", err)
	}
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == m.name })
	archive.Files = append(archive.Files, txtar.File{Name: m.name, Data: []byte(m.String())})
	slices.SortFunc(archive.Files, func(a, b txtar.File) int { return strings.Compare(a.Name, b.Name) })
	return os.WriteFile(path, txtar.Format(archive), 0o644)
}
