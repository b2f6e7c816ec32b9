// SPDX-License-Identifier: Apache-2.0

// Command phrases lists unwanted phrases and exits with status 1 if there are any.
//
//	go -C hack run ./phrases
//
// It checks guides and Go files that git tracks. In Go files, it checks comments and, outside of tests, string
// literals. The file allowed.txt lists exceptions. Each line contains a file or a directory. If a phrase follows, only
// this phrase is allowed there; otherwise, all phrases are allowed.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/deployerkit/deployerkit/hack/internal/gitfiles"
	"github.com/deployerkit/deployerkit/hack/internal/phrases"
)

//go:embed allowed.txt
var allowed string

func main() {
	if err := run(os.Stdout, "..", allowed); err != nil {
		fmt.Fprintln(os.Stderr, "phrases:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root, allowed string) error {
	names, err := gitfiles.List(root, "*.go", "*.md")
	if err != nil {
		return err
	}
	found := 0
	for _, name := range names {
		hits, err := read(filepath.Join(root, name))
		if err != nil {
			return err
		}
		for _, hit := range hits {
			if !isAllowed(allowed, name, hit.Phrase) {
				found++
				fmt.Fprintf(out, "%s:%d: %q\n", name, hit.Line, hit.Phrase)
			}
		}
	}
	if found > 0 {
		return fmt.Errorf("found %d unwanted phrases; reword them, or list quotations in hack/phrases/allowed.txt", found)
	}
	return nil
}

func read(path string) ([]phrases.Hit, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist): // the file was deleted but is still in the index
		return nil, nil
	case err != nil:
		return nil, err
	case strings.HasSuffix(path, ".md"):
		return phrases.FindInGuide(string(text)), nil
	default:
		return phrases.FindInGo(text, !strings.HasSuffix(path, "_test.go")), nil
	}
}

// isAllowed reports whether a line of the list allows the phrase in the file.
func isAllowed(list, name, phrase string) bool {
	for line := range strings.Lines(list) {
		line, _, _ = strings.Cut(line, "#")
		at, only, _ := strings.Cut(strings.TrimSpace(line), " ")
		covers := at == name || (strings.HasSuffix(at, "/") && strings.HasPrefix(name, at))
		if covers && (only == "" || strings.EqualFold(only, phrase)) {
			return true
		}
	}
	return false
}
