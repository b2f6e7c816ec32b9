// SPDX-License-Identifier: Apache-2.0

// Command metrics prints measurements of the code. For each measurement, it prints the value, the limit, and the
// entries that exceed the limit.
//
//	go run ./hack/metrics [directory]
//
// Test files count only in the number of files. A value above its limit is marked with OVER. The exit code is 0 even if
// limits are exceeded.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	git := exec.Command("git", "ls-files")
	git.Dir, git.Stderr = root, os.Stderr
	out, err := git.Output()
	if err != nil {
		return fmt.Errorf("list the files: %w", err)
	}
	r, err := read(root, strings.Fields(string(out)))
	if err != nil {
		return err
	}
	for _, m := range r.measures() {
		m.print(os.Stdout)
	}
	return nil
}
