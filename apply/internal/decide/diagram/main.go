// SPDX-License-Identifier: Apache-2.0

// Command diagram writes the diagrams of the state machines to docs/architecture.md. It is run by go generate.
package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/deployerkit/deployerkit/apply/internal/decide"
)

const (
	begin = "<!-- begin generated: state machines -->\n"
	end   = "<!-- end generated: state machines -->\n"
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

// render returns a copy of a document in which the text between the markers is replaced by the current diagrams.
func render(doc []byte) ([]byte, error) {
	head, rest, foundBegin := bytes.Cut(doc, []byte(begin))
	_, tail, foundEnd := bytes.Cut(rest, []byte(end))
	if !foundBegin || !foundEnd {
		return nil, fmt.Errorf("the file does not contain the lines %q and %q", begin, end)
	}
	return slices.Concat(head, []byte(begin+"\n"+diagrams(decide.ListStates())+end), tail), nil
}

// diagrams returns a diagram and a table for each machine.
func diagrams(rows []decide.Row) string {
	out := &strings.Builder{}
	for len(rows) > 0 {
		machine, _ := split(rows[0].State)
		last := slices.IndexFunc(rows, func(row decide.Row) bool { other, _ := split(row.State); return other != machine })
		if last < 0 {
			last = len(rows)
		}
		writeMachine(out, machine, rows[:last])
		rows = rows[last:]
	}
	return out.String()
}

// writeMachine writes the diagram and the table of one machine. A state of another machine is shown with the name of
// that machine.
func writeMachine(out *strings.Builder, machine string, rows []decide.Row) {
	fmt.Fprintf(out, "**%s**\n\n```mermaid\nstateDiagram-v2\n", machine)
	for _, row := range rows {
		_, from := split(row.State)
		if row.IsFirst {
			fmt.Fprintf(out, "  [*] --> %s\n", from)
		}
		for _, next := range row.Next {
			other, to := split(next)
			if other != machine {
				to = other + to
			}
			fmt.Fprintf(out, "  %s --> %s\n", from, to)
		}
	}
	fmt.Fprint(out, "```\n\n| State | What the machine does in this state |\n|---|---|\n")
	for _, row := range rows {
		_, name := split(row.State)
		fmt.Fprintf(out, "| %s | %s |\n", name, row.Action)
	}
	fmt.Fprintln(out)
}

// split returns the machine and the name of a state.
func split(state decide.State) (machine, name string) {
	machine, name, _ = strings.Cut(string(state), "/")
	return machine, name
}
