// SPDX-License-Identifier: Apache-2.0

// Package gobuild compiles programs of other Go modules from a pinned recipe and caches them, so that tests and demos
// can run them on a machine that has only the go command and a module proxy. A build runs once per machine, even if
// several processes request it at the same time, and shows its progress.
package gobuild

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// Recipe describes a Go module that compiles to one program. The program behaves according to the
// name under which it is started.
type Recipe struct {
	// What is the name of the result in messages, for example "the control plane".
	What string
	// Version is the version of the programs. It is part of the cache key and of messages.
	Version string
	// Notice is reported once before the build and says how long it takes.
	Notice string
	// Module is the module path in go.mod.
	Module string
	// Files maps file names to contents: go.mod, go.sum and the sources.
	Files map[string]string
	// Flags are passed to go build.
	Flags []string
	// HostCgo compiles with cgo if go build does so by default, and so can use the user's build cache. Otherwise cgo is off.
	HostCgo bool
	// Program is the file name of the compiled program.
	Program string
	// Names are the names under which the program is started; each becomes a link to it.
	Names []string
	// Space is the number of bytes that a cold build needs in the build cache and the module cache.
	Space uint64
}

// Key identifies the result of the build. It depends on everything that can change the program.
func (r Recipe) Key() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		fmt.Fprintf(h, "%d:%s", len(r.Files[name]), r.Files[name])
	}
	for _, flag := range r.Flags {
		fmt.Fprintf(h, "%d:%s", len(flag), flag)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	return fmt.Sprintf("%s-%s-%s-%s", r.Version, runtime.GOOS, runtime.GOARCH, sum[:12])
}

// Dir returns the directory below cache in which a Finder keeps the result.
func (r Recipe) Dir(cache string) string { return filepath.Join(cache, "built-"+r.Key()) }

// write writes the module into dir, which must exist.
func (r Recipe) write(dir string) error {
	for name, content := range r.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write build recipe: %w", err)
		}
	}
	return nil
}
