// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"golang.org/x/mod/modfile"
)

// deployerKit is the path of this module.
const deployerKit = "github.com/deployerkit/deployerkit"

// source is the source of DeployerKit for the new module.
type source struct {
	Version string
	Replace string // directory for a replace directive; empty for a release
	sums    string // go.sum of that directory, so that go mod tidy need not look up known modules
}

// findSource returns the given directory, the release of this program, or the checkout of a development build.
func findSource(dir string, info *debug.BuildInfo) (source, error) {
	if dir == "" {
		if version := releaseOf(info); version != "" {
			return source{Version: version}, nil
		}
		dir = checkout()
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return source{}, err
	}
	content, err := os.ReadFile(filepath.Join(abs, "go.mod"))
	if err != nil || modfile.ModulePath(content) != deployerKit {
		return source{}, fmt.Errorf("%q is not a checkout of DeployerKit; name one with --deployerkit", abs)
	}
	sums, err := os.ReadFile(filepath.Join(abs, "go.sum"))
	return source{Version: "v0.0.0", Replace: modfile.AutoQuote(abs), sums: string(sums)}, err
}

// releaseOf returns the version of DeployerKit in a program that was built from the module cache, as a main module or
// as a tool of another one. It returns "" for a development build.
func releaseOf(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == deployerKit && m.Sum != "" && m.Replace == nil {
			return m.Version
		}
	}
	return ""
}

// checkout returns the directory in which this program was compiled. After a build with -trimpath, that is not a
// directory.
func checkout() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
