// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Finder finds or creates a directory with programs. It first checks the directory that an environment variable names,
// then the cache, and then other places. If none of them contains the programs, it downloads or builds the programs.
type Finder struct {
	// Recipe describes how to build the programs if no directory with the programs is found.
	Recipe Recipe
	// Required lists the programs that the caller requires. It is a subset of Recipe.Names.
	Required []string
	// Env is the name of an environment variable. If the variable names a directory that contains all required programs,
	// Find returns this directory.
	Env string
	// Cache is the directory in which the programs are stored, such as the result of CacheDir.
	Cache string
	// Places are other directories that may contain the programs. They are checked after the cache.
	Places []string
	// Report shows the progress of long steps.
	Report *Reporter
	// Download fills a directory with prebuilt programs. Find builds the programs only if Download fails or is nil.
	// DownloadKey identifies the result of Download in the cache.
	Download    func(ctx context.Context, dir string) error
	DownloadKey string

	build func(ctx context.Context, dir string) error // replaces the build of the recipe in tests
}

// CacheDir returns the path of a cache directory for the given name, below os.UserCacheDir(). If the system has no
// cache directory, the error names the environment variables that can be set.
func CacheDir(name, env string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory (set HOME or %s): %w", env, err)
	}
	return filepath.Join(base, "deployerkit", name), nil
}

// Find returns a directory with all required programs. It is safe for concurrent use, even by several processes: one
// process builds, and the others wait. The text of an error is one line.
func (f *Finder) Find(ctx context.Context) (string, error) {
	if dir, ok := f.findExisting(); ok {
		return dir, nil
	}
	if err := os.MkdirAll(f.Cache, 0o750); err != nil {
		return "", fmt.Errorf("make cache directory: %w", err)
	}
	unlock, err := lockFile(ctx, filepath.Join(f.Cache, "lock"), func() {
		f.Report.printOnce("another process is preparing %s; waiting for it", f.Recipe.DisplayName)
		f.Report.printStatus(time.Now(), "still waiting for another process")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	// Another process may have built the programs while it held the lock.
	if dir, ok := f.findExisting(); ok {
		return dir, nil
	}
	f.removeLeftovers()
	return f.create(ctx)
}

// findExisting returns a directory that contains all required programs. It checks the directory in the environment
// variable, the cache and Places.
func (f *Finder) findExisting() (string, bool) {
	if dir := os.Getenv(f.Env); dir != "" {
		missing := ListMissing(dir, f.Required)
		if len(missing) == 0 {
			return dir, true
		}
		f.Report.printOnce("%s=%s has no %s; looking elsewhere", f.Env, dir, strings.Join(missing, ", "))
	}
	for _, dir := range append([]string{f.buildDir(), f.downloadDir()}, f.Places...) {
		if len(ListMissing(dir, f.Required)) == 0 {
			return dir, true
		}
	}
	return "", false
}

// create downloads or builds the programs. The caller holds the lock.
func (f *Finder) create(ctx context.Context) (string, error) {
	if f.Download != nil {
		end := f.Report.startStatus(func(elapsed time.Duration) string { return "downloading, " + elapsed.Round(time.Second).String() })
		err := f.fill(ctx, f.downloadDir(), f.Download)
		end()
		if err == nil {
			return f.downloadDir(), nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("download: %w", ctx.Err())
		}
		f.Report.Printf("no prebuilt binaries (%v); building them from Go modules", err)
	}
	build := f.build
	if build == nil {
		build = (&builder{recipe: f.Recipe, env: f.Env, report: f.Report, lookPath: exec.LookPath, freeBytes: getFreeSpace}).build
	}
	if err := f.fill(ctx, f.buildDir(), build); err != nil {
		return "", fmt.Errorf("build from Go modules: %w", err)
	}
	return f.buildDir(), nil
}

// fill calls the function `produce` with a temporary directory. If `produce` succeeds, fill renames the temporary
// directory to dir.
func (f *Finder) fill(ctx context.Context, dir string, produce func(context.Context, string) error) (err error) {
	tmp, err := os.MkdirTemp(f.Cache, "tmp-")
	if err != nil {
		return fmt.Errorf("make temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := produce(ctx, tmp); err != nil {
		return err
	}
	if missing := ListMissing(tmp, f.Required); len(missing) > 0 {
		return fmt.Errorf("the result does not contain %s", strings.Join(missing, ", "))
	}
	if err := os.RemoveAll(dir); err != nil { // dir is incomplete, because f.existing did not accept it
		return fmt.Errorf("remove incomplete binaries: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("store binaries: %w", err)
	}
	return nil
}

// removeLeftovers removes the temporary directories of processes that were killed. The caller holds the lock.
func (f *Finder) removeLeftovers() {
	leftovers, _ := filepath.Glob(filepath.Join(f.Cache, "tmp-*")) // the pattern is constant and valid
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			f.Report.Printf("cannot remove %s: %v", dir, err)
		}
	}
}

func (f *Finder) buildDir() string { return f.Recipe.Dir(f.Cache) }

func (f *Finder) downloadDir() string { return filepath.Join(f.Cache, "downloaded-"+f.DownloadKey) }

// ListMissing returns those names for which dir contains no executable file.
func ListMissing(dir string, names []string) []string {
	var missing []string
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}
