// SPDX-License-Identifier: Apache-2.0

// Command release builds the parts of a release that are neither images nor charts:
//
//	go -C hack run ./release cli v0.1.0 dist      # the program deployerkit for each system, as archives with their bills of materials
//	go -C hack run ./release cli v0.1.0 dist linux/amd64
//	go -C hack run ./release notes v0.1.0 dist    # release-notes.md: the section of the version in CHANGELOG.md
//	go -C hack run ./release checksums dist       # checksums.txt: the SHA-256 of each file
//	go -C hack run ./release api v0.1.0           # fails if the version may not contain the changes of the API
//
// The same commit always results in the same archives.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// errUsage is returned for wrong arguments.
var errUsage = errors.New("want cli VERSION DIR [OS/ARCH…], notes VERSION DIR, checksums DIR, or api VERSION")

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run runs the command in the directory hack.
func run(out io.Writer, args []string) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	r := repository{root: root, out: out}
	switch {
	case len(args) >= 3 && args[0] == "cli":
		selected, err := selectPlatforms(args[3:])
		if err != nil {
			return err
		}
		return r.buildArchives(args[1], args[2], selected)
	case len(args) == 3 && args[0] == "notes":
		return r.writeNotes(args[1], args[2])
	case len(args) == 2 && args[0] == "checksums":
		return writeChecksums(args[1])
	case len(args) == 2 && args[0] == "api":
		return r.checkAPI(args[1])
	}
	return errUsage
}

// repository is the repository of which a release is made.
type repository struct {
	root string
	out  io.Writer // receives one line for each result
}

// run runs a program in the repository and returns its standard output.
func (r repository) run(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...) //nolint:gosec // the arguments are constants, versions and paths
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), append(env, "GOWORK=off", "GOFLAGS=-mod=readonly")...)
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(output)), nil
}

// tool builds a program of the module hack/releasetools, and returns its path.
func (r repository) tool(path string) (string, error) {
	bin := filepath.Join(r.root, "hack", "releasetools", "bin", filepath.Base(path))
	_, err := r.run([]string{"CGO_ENABLED=0"}, "go", "-C", "hack/releasetools", "build", "-trimpath", "-o", bin, path)
	return bin, err
}
