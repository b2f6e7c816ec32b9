// SPDX-License-Identifier: Apache-2.0

// Package gobuild compiles programs of other Go modules at pinned versions, and caches the programs. Tests and demos
// can then run these programs on a machine that has only the go command and a module proxy. A build shows its progress.
// It runs only once per machine, even if several processes request it at the same time.
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

// Recipe describes a Go module that compiles to one program. The behavior of the program depends on the name under
// which it is started.
type Recipe struct {
	// DisplayName is the name of the result in messages, for example "the control plane".
	DisplayName string
	// Version is the version of the programs. It is part of the cache key and of messages.
	Version string
	// Notice is a message about the expected duration of the build. It is printed once before the build.
	Notice string
	// Module is the module path in go.mod.
	Module string
	// Files contains go.mod, go.sum and the sources. It maps the name of each file to its content.
	Files map[string]string
	// Flags are passed to go build.
	Flags []string
	// HostCgo makes go build use its default setting for cgo, so that the user's build cache can be used. If HostCgo is
	// false, cgo is disabled.
	HostCgo bool
	// Program is the file name of the compiled program.
	Program string
	// Names are the names under which the program is started. Each becomes a link to the program.
	Names []string
	// Space is the number of bytes that the build needs if the build cache and the module cache are empty.
	Space uint64
}

// Key identifies the result of the build. It depends on the version, the platform, the files and the flags.
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

// Dir returns the directory below the given cache directory in which a Finder stores the result.
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
