// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// assetsEnv names a directory with binaries that wins over every other place.
const assetsEnv = "KUBEBUILDER_ASSETS"

// AssetsOptions say what Assets shall look for.
type AssetsOptions struct {
	// ControllerManager asks for kube-controller-manager beside etcd and kube-apiserver.
	ControllerManager bool
	// Progress is told what takes long (download, build, waiting for another process). nil: os.Stderr.
	Progress io.Writer
}

// Assets returns a directory with the binaries of the control plane and makes them if they are nowhere
// (see the package documentation for the places). The first build takes about eight minutes: call it
// once before tests that have a time limit of their own. Safe for concurrent use, across processes too.
// Errors are one line and say what to do: no go command, no disk space, no network.
func Assets(ctx context.Context, o AssetsOptions) (string, error) {
	f, err := newFinder(o)
	if err != nil {
		return "", fmt.Errorf("find control plane: %w", err)
	}
	dir, err := f.find(ctx)
	if err != nil {
		return "", fmt.Errorf("find control plane: %w", err)
	}
	return dir, nil
}

// finder looks for the binaries. Its functions are fields so that tests can do without network and compiler.
type finder struct {
	need     []string // names of the binaries
	env      string   // value of KUBEBUILDER_ASSETS
	cache    string   // our directory below os.UserCacheDir()
	report   *reporter
	download func(ctx context.Context, dir string) error // fills dir; nil: not worth trying
	build    func(ctx context.Context, dir string) error // fills dir
}

func newFinder(o AssetsOptions) (*finder, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no cache directory (set HOME or %s): %w", assetsEnv, err)
	}
	report := newReporter(o.Progress)
	b := newBuilder(report)
	f := &finder{
		need:   []string{etcdName, apiServerName},
		env:    os.Getenv(assetsEnv),
		cache:  filepath.Join(base, "deployerkit", "envtest"),
		report: report,
		build:  b.build,
	}
	if o.ControllerManager {
		f.need = append(f.need, controllerManagerName)
	} else {
		f.download = newDownloader(report).download
	}
	return f, nil
}

func (f *finder) find(ctx context.Context) (string, error) {
	if dir, ok := f.existing(); ok {
		return dir, nil
	}
	if err := os.MkdirAll(f.cache, 0o750); err != nil {
		return "", fmt.Errorf("make cache directory: %w", err)
	}
	unlock, err := lockFile(ctx, filepath.Join(f.cache, "lock"), f.report)
	if err != nil {
		return "", err
	}
	defer unlock()
	// Whoever held the lock before us may have made what we want.
	if dir, ok := f.existing(); ok {
		return dir, nil
	}
	f.removeLeftovers()
	return f.make(ctx)
}

// existing looks at the places that cost nothing.
func (f *finder) existing() (string, bool) {
	if f.env != "" {
		missing := missingBinaries(f.env, f.need)
		if len(missing) == 0 {
			return f.env, true
		}
		f.report.once("%s=%s has no %s; looking further", assetsEnv, f.env, strings.Join(missing, ", "))
	}
	for _, dir := range []string{f.builtDir(), f.downloadedDir()} {
		if len(missingBinaries(dir, f.need)) == 0 {
			return dir, true
		}
	}
	return "", false
}

// make downloads or builds. The caller holds the lock.
func (f *finder) make(ctx context.Context) (string, error) {
	if f.download != nil {
		err := f.fill(ctx, f.downloadedDir(), f.download)
		if err == nil {
			return f.downloadedDir(), nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("download: %w", ctx.Err())
		}
		f.report.printf("no prebuilt binaries (%v); building them from Go modules", err)
	}
	if err := f.fill(ctx, f.builtDir(), f.build); err != nil {
		return "", fmt.Errorf("build from Go modules: %w", err)
	}
	return f.builtDir(), nil
}

// fill lets produce write into a temporary directory, which becomes dir in one step when it is complete.
func (f *finder) fill(ctx context.Context, dir string, produce func(context.Context, string) error) (err error) {
	tmp, err := os.MkdirTemp(f.cache, "tmp-")
	if err != nil {
		return fmt.Errorf("make temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := produce(ctx, tmp); err != nil {
		return err
	}
	if missing := missingBinaries(tmp, f.need); len(missing) > 0 {
		return fmt.Errorf("result has no %s", strings.Join(missing, ", "))
	}
	if err := os.RemoveAll(dir); err != nil { // incomplete, or existing would have taken it
		return fmt.Errorf("remove incomplete binaries: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("store binaries: %w", err)
	}
	return nil
}

// removeLeftovers removes what processes that were killed have left. The caller holds the lock.
func (f *finder) removeLeftovers() {
	leftovers, _ := filepath.Glob(filepath.Join(f.cache, "tmp-*")) // the pattern is constant and valid
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			f.report.printf("cannot remove %s: %v", dir, err)
		}
	}
}

func (f *finder) builtDir() string { return filepath.Join(f.cache, "built-"+recipeKey()) }

func (f *finder) downloadedDir() string { return filepath.Join(f.cache, "downloaded-"+downloadKey()) }

// missingBinaries returns the names that are no executable files in dir.
func missingBinaries(dir string, names []string) []string {
	var missing []string
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}
