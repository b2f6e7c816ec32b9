// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// module is the path of the library.
const module = "github.com/deployerkit/deployerkit"

// checkAPI compares the public packages with those of the last tag. It fails if they contain changes that the version
// may not contain: an incompatible change needs a new major version, or a new minor version while the major version
// is 0. Without a tag, there is nothing to compare.
func (r repository) checkAPI(version string) error {
	if !semver.IsValid(version) {
		return fmt.Errorf("version %q is not a semantic version such as v0.1.0", version)
	}
	tag, err := r.run(nil, "git", "describe", "--tags", "--abbrev=0", "--match=v*")
	if err != nil {
		fmt.Fprintln(r.out, "There is no tag, so the API is not compared.")
		return nil //nolint:nilerr // the first release
	}
	changes, err := r.listIncompatibleChanges(tag)
	if err != nil {
		return err
	}
	if changes == "" || mayBreak(tag, version) {
		fmt.Fprintf(r.out, "Version %s may contain the changes of the API since %s.\n", version, tag)
		return nil
	}
	fmt.Fprintln(r.out, changes)
	return fmt.Errorf("version %s may not contain the incompatible changes since %s above", version, tag)
}

// mayBreak reports whether a version may contain incompatible changes of the API of an earlier version.
func mayBreak(earlier, version string) bool {
	if semver.Major(version) != semver.Major(earlier) {
		return true
	}
	return semver.Major(version) == "v0" && semver.MajorMinor(version) != semver.MajorMinor(earlier)
}

// listIncompatibleChanges returns the incompatible changes since a tag, one per line, or "" if there are none.
func (r repository) listIncompatibleChanges(tag string) (string, error) {
	tool, err := r.tool("golang.org/x/exp/cmd/apidiff")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "release-api-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	earlier := filepath.Join(dir, "earlier")
	if _, err := r.run(nil, "git", "worktree", "add", "--detach", earlier, tag); err != nil {
		return "", err
	}
	then, now := filepath.Join(dir, "then"), filepath.Join(dir, "now")
	_, err = repository{root: earlier, out: r.out}.run(nil, tool, "-m", "-w", then, module)
	if _, removed := r.run(nil, "git", "worktree", "remove", "--force", earlier); removed != nil {
		err = errors.Join(err, removed)
	}
	if err != nil {
		return "", err
	}
	if _, err := r.run(nil, tool, "-m", "-w", now, module); err != nil {
		return "", err
	}
	changes, err := r.run(nil, tool, "-m", "-incompatible", then, now)
	return strings.TrimSpace(changes), err
}
