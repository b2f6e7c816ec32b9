// SPDX-License-Identifier: Apache-2.0

// Command phrases lists wording that must not come back, and exits with status 1 if there is any.
//
//	go run ./hack/phrases
//
// It reads the guides, the comments of all Go files, and the string literals of those that are no tests, as far as git
// knows the file. A line of allowed.txt names a file or a directory, and optionally the one phrase that it may have.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/deployerkit/deployerkit/hack/internal/phrases"
)

//go:embed allowed.txt
var allowed string

func main() {
	if err := run(os.Stdout, ".", allowed); err != nil {
		fmt.Fprintln(os.Stderr, "phrases:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root, allowed string) error {
	git := exec.Command("git", "ls-files", "-z", "*.go", "*.md")
	git.Dir, git.Stderr = root, os.Stderr
	names, err := git.Output()
	if err != nil {
		return fmt.Errorf("list the files: %w", err)
	}
	found := 0
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
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
		return fmt.Errorf("%d phrases to reword, or to list in hack/phrases/allowed.txt if they are quoted", found)
	}
	return nil
}

func read(path string) ([]phrases.Hit, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist): // deleted, but still in the index
		return nil, nil
	case err != nil:
		return nil, err
	case strings.HasSuffix(path, ".md"):
		return phrases.InGuide(string(text)), nil
	default:
		return phrases.InGo(text, !strings.HasSuffix(path, "_test.go")), nil
	}
}

// isAllowed reports whether a line of the list covers a phrase of a file.
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
