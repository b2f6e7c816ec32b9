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
	"time"
)

// lab tries mutants.
type lab struct {
	root    string // of the repository
	scratch string // for changed files
	out     io.Writer
	tests   runner
	mu      sync.Mutex
	counts  map[fate]int
}

// runner runs go test. args do not hold what each run needs.
type runner interface {
	run(ctx context.Context, args ...string) (verdict, error)
}

// fate is what became of a mutant.
type fate string

const (
	caught   fate = "caught"
	survived fate = "SURVIVED"
	broken   fate = "BROKEN" // does not apply, does not build, or its tests do not run
)

// tryAll tries the mutants, as many at a time as there are cores. true: all were caught.
func (l *lab) tryAll(ctx context.Context, mutants []mutant) (bool, error) {
	if err := l.sound(ctx, mutants); err != nil {
		return false, err
	}
	l.counts = map[fate]int{}
	next := make(chan mutant)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for m := range next {
				l.try(ctx, m)
			}
		})
	}
	for _, m := range mutants {
		next <- m
	}
	close(next)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	fmt.Fprintf(l.out, "%d mutants: %d caught, %d survived, %d broken\n", len(mutants), l.counts[caught], l.counts[survived], l.counts[broken])
	return l.counts[caught] == len(mutants), nil
}

// sound runs the tests of all mutants on the code as it is: otherwise their failures would mean nothing.
func (l *lab) sound(ctx context.Context, mutants []mutant) error {
	var packages []string
	for _, m := range mutants {
		packages = append(packages, m.packages()...)
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	v, err := l.tests.run(ctx, packages...)
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
	fmt.Fprintf(l.out, "%d tests of %d packages pass without a mutant\n", v.passed, len(packages))
	return nil
}

func (l *lab) try(ctx context.Context, m mutant) {
	begin := time.Now()
	f, detail := l.fateOf(ctx, m)
	if ctx.Err() != nil {
		return
	}
	if f != caught {
		detail += "\n          " + m.fault + "\n          go test " + strings.Join(m.tests, " ")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[f]++
	fmt.Fprintf(l.out, "%-8s  %s  %.1fs  %s\n", f, m.name, time.Since(begin).Seconds(), detail)
}

// fateOf tries one mutant, and says why it is so.
func (l *lab) fateOf(ctx context.Context, m mutant) (fate, string) {
	overlay, err := l.overlay(ctx, m)
	if err != nil {
		return broken, err.Error()
	}
	v, err := l.tests.run(ctx, append([]string{"-overlay=" + overlay}, m.tests...)...)
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

// overlay makes the changed files of a mutant and the file that tells go test about them.
func (l *lab) overlay(ctx context.Context, m mutant) (string, error) {
	dir := filepath.Join(l.scratch, m.name)
	if err := m.apply(ctx, l.root, dir); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, file := range m.files {
		from, err := filepath.Abs(filepath.Join(l.root, file))
		if err != nil {
			return "", err
		}
		replace[from] = filepath.Join(dir, file)
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}
