// SPDX-License-Identifier: Apache-2.0

// Command generate writes the column of tests into docs/behaviours.md. It is
// run by go generate, in the directory docs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/deployerkit/deployerkit/docs/internal/behaviours"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run fills the document that the one argument names; the root of the repository is above it.
func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the markdown file, got %d", len(args))
	}
	doc, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	path, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	tests, err := behaviours.Scan(filepath.Dir(filepath.Dir(path)))
	if err != nil {
		return err
	}
	filled, missing, err := behaviours.Fill(doc, tests)
	if err != nil {
		return fmt.Errorf("fill %s: %w", args[0], err)
	}
	if len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "%s: no test names %s\n", args[0], strings.Join(missing, " "))
	}
	return os.WriteFile(args[0], filled, 0o644)
}
