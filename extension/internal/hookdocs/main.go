// SPDX-License-Identifier: Apache-2.0

// Command hookdocs writes the table of hook points to docs/hooks.md. It is run by go generate.
package main

import (
	"bytes"
	"fmt"
	"os"
)

const (
	begin = "<!-- begin generated: hook points -->\n"
	end   = "<!-- end generated: hook points -->\n"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the markdown file, got %d", len(args))
	}
	doc, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	out, err := render(doc)
	if err != nil {
		return fmt.Errorf("render %s: %w", args[0], err)
	}
	return os.WriteFile(args[0], out, 0o644)
}

// render returns a copy of a document in which the text between the markers is replaced by the current table.
func render(doc []byte) ([]byte, error) {
	head, rest, foundBegin := bytes.Cut(doc, []byte(begin))
	_, tail, foundEnd := bytes.Cut(rest, []byte(end))
	if !foundBegin || !foundEnd {
		return nil, fmt.Errorf("the file does not contain the lines %q and %q", begin, end)
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteString(begin + "\n")
	b.WriteString(formatTable() + "\n" + end)
	b.Write(tail)
	return b.Bytes(), nil
}
