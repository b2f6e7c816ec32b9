// SPDX-License-Identifier: Apache-2.0

// Command metrics prints measurements of the code. For each measurement, it prints the value and the largest entries.
// The measurements describe the code and are not limits.
//
//	go -C hack run ./metrics [directory]
//	go -C hack run ./metrics words > hack/metrics/words.txt
//
// Test files count only in the number of files. The second form prints the first words of functions that are common in
// Kubernetes code. The measurement of rare first words uses this list.
package main

import (
	"fmt"
	"os"

	"github.com/deployerkit/deployerkit/hack/internal/gitfiles"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	do := run
	if root == "words" {
		do = func(string) error { return printWords(os.Stdout) }
	}
	if err := do(root); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	names, err := gitfiles.List(root)
	if err != nil {
		return err
	}
	r, err := read(root, names)
	if err != nil {
		return err
	}
	for _, m := range r.newMeasures() {
		m.print(os.Stdout)
	}
	return nil
}
