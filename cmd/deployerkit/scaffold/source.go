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

// deployerKit is the module path of DeployerKit.
const deployerKit = "github.com/deployerkit/deployerkit"

// source describes which DeployerKit the new module uses: a released version, or a directory with a checkout.
type source struct {
	Version string
	Replace string // the directory of the checkout, for a replace directive in go.mod; empty for a release
	sums    string // the content of go.sum in that directory, so that go mod tidy need not look up known modules
}

// findSource returns the source of DeployerKit. If dir is not empty, the result is the checkout in dir. Otherwise the
// result is the release of this program or, for a development build, the checkout from which the program was built.
func findSource(dir string, info *debug.BuildInfo) (source, error) {
	if dir == "" {
		if version := getRelease(info); version != "" {
			return source{Version: version}, nil
		}
		dir = getCheckoutDir()
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

// getRelease returns the version of DeployerKit from which this program was built. It returns "" for a development
// build.
func getRelease(info *debug.BuildInfo) string {
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

// getCheckoutDir returns the directory with the source code of this program. If the program was built with -trimpath,
// the result is not the path of a directory.
func getCheckoutDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
