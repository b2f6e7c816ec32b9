// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// runner runs the tests of mutants.
type runner struct {
	root    string // root of the repository
	scratch string // directory for the changed files
	out     io.Writer
	tests   tester

	mu     sync.Mutex
	counts map[result]int

	done, total atomic.Int64 // numbers of mutants
}

// tester runs go test with args, which contains only those arguments that differ between runs.
type tester interface {
	run(ctx context.Context, args ...string) (testResult, error)
}

// result describes whether the tests caught a mutant.
type result string

const (
	caught   result = "caught"
	survived result = "SURVIVED"
	broken   result = "BROKEN" // an edit does not apply, the code does not build, or the tests do not run
)

// tryAll tries the mutants. As many mutants are tried in parallel as there are cores. It reports whether all mutants
// were caught.
func (r *runner) tryAll(ctx context.Context, mutants []mutant) (bool, error) {
	if err := r.checkUnchangedCode(ctx, mutants); err != nil {
		return false, err
	}
	r.counts = map[result]int{}
	r.total.Store(int64(len(mutants)))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for _, m := range mutants {
		workers.Go(func() error {
			r.try(ctx, m)
			return context.Cause(ctx)
		})
	}
	if err := workers.Wait(); err != nil {
		return false, err
	}
	fmt.Fprintf(r.out, "%d mutants: %d caught, %d survived, %d broken\n", len(mutants), r.counts[caught], r.counts[survived], r.counts[broken])
	return r.counts[caught] == len(mutants), nil
}

// formatProgress returns a line about the progress of the run.
func (r *runner) formatProgress(elapsed time.Duration) string {
	if r.total.Load() == 0 {
		return fmt.Sprintf("mutants: running the tests without a mutant, %s", elapsed)
	}
	return fmt.Sprintf("mutants: %d of %d tried, %s", r.done.Load(), r.total.Load(), elapsed)
}

// checkUnchangedCode runs the tests of all mutants on the unchanged code. It returns an error if a test fails on the
// unchanged code, because a failure of this test with a mutant would prove nothing.
func (r *runner) checkUnchangedCode(ctx context.Context, mutants []mutant) error {
	var packages []string
	for _, m := range mutants {
		packages = append(packages, m.listPackages()...)
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	v, err := r.tests.run(ctx, packages...)
	switch {
	case err != nil:
		return err
	case v.unbuilt != "":
		return fmt.Errorf("the tests do not build without a mutant: %s", v.unbuilt)
	case v.failure() != "":
		return fmt.Errorf("the tests fail without a mutant: %s", v.failure())
	case v.passed == 0:
		return errors.New("there are no tests")
	}
	fmt.Fprintf(r.out, "%d tests of %d packages pass without a mutant\n", v.passed, len(packages))
	return nil
}

// try tries one mutant and prints its result.
func (r *runner) try(ctx context.Context, m mutant) {
	begin := time.Now()
	got, detail := r.resultOf(ctx, m)
	if ctx.Err() != nil {
		return
	}
	if got != caught {
		detail += "\n          " + m.fault + "\n          go test " + strings.Join(m.tests, " ")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[got]++
	fmt.Fprintf(r.out, "[%d/%d] %-8s  %s  %.1fs  %s\n", r.done.Add(1), r.total.Load(), got, m.name, time.Since(begin).Seconds(), detail)
}

// resultOf returns the result of a mutant and a text that explains the result.
func (r *runner) resultOf(ctx context.Context, m mutant) (result, string) {
	overlay, err := r.writeOverlay(m)
	if err != nil {
		return broken, err.Error()
	}
	v, err := r.tests.run(ctx, append([]string{"-overlay=" + overlay}, m.tests...)...)
	switch {
	case err != nil:
		return broken, err.Error()
	case v.unbuilt != "":
		return broken, "does not build: " + v.unbuilt
	case v.failure() != "":
		return caught, v.failure()
	case v.passed == 0:
		return broken, "no test ran"
	}
	return survived, fmt.Sprintf("%d tests passed", v.passed)
}

// writeOverlay writes the changed files of a mutant and an overlay file for go test. It returns the path of the overlay
// file.
func (r *runner) writeOverlay(m mutant) (string, error) {
	files, err := m.apply(r.root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, data := range files {
		from, err := filepath.Abs(filepath.Join(r.root, name))
		if err != nil {
			return "", err
		}
		replace[from] = filepath.Join(r.scratch, m.name, name)
		if err := os.MkdirAll(filepath.Dir(replace[from]), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(replace[from], data, 0o600); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.scratch, m.name, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}
