// SPDX-License-Identifier: Apache-2.0

// Command generate writes the recorded results of the benchmark to a markdown file, between two marker
// lines:
//
//	go run ./test/landscaper/scenario/generate docs/benchmarks.md
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/deployerkit/deployerkit/test/landscaper/scenario"
)

// The markers before and after the table.
const (
	begin = "<!-- begin: scenarios with a real Landscaper -->\n"
	end   = "<!-- end: scenarios with a real Landscaper -->\n"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	results, err := scenario.ReadResults()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path) //nolint:gosec // the caller says which file
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return fmt.Errorf("%s has no markers", path)
	}
	return os.WriteFile(path, []byte(head+begin+"\n"+results.ToMarkdown()+"\n"+end+tail), 0o600) //nolint:gosec // the caller says which file
}
