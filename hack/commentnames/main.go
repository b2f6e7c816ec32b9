// SPDX-License-Identifier: Apache-2.0

// Command commentnames lists names in Go comments that nothing declares, for example because a function was renamed.
// It exits with status 1 if there are any.
//
//	go -C hack run ./commentnames
//
// It checks all Go files that git tracks, but only names that are certainly not ordinary words: words with a capital
// letter after a small one, such as newClient or TypeMeta, and names with a dot if the first part is a type of the same
// package or a package of the repository, such as Client.Get or observe.Watcher. It does not check code blocks.
// The file allowed.txt lists words that are not names, and names that other programs declare.
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/deployerkit/deployerkit/hack/internal/gitfiles"
)

//go:embed allowed.txt
var allowed string

func main() {
	if err := run(os.Stdout, "..", allowed); err != nil {
		fmt.Fprintln(os.Stderr, "commentnames:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root, allowed string) error {
	r := newRepository(allowed)
	names, err := gitfiles.List(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.addFile(root, filepath.FromSlash(name)); err != nil {
			return err
		}
	}
	found := 0
	for _, p := range r.listPackages() {
		for _, name := range r.findUndeclared(p) {
			found++
			fmt.Fprintln(out, name)
		}
	}
	if found > 0 {
		return fmt.Errorf("nothing declares %d of the names in comments; correct them, or list them in hack/commentnames/allowed.txt", found)
	}
	return nil
}
