// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// cancelWait is how long the go command may take to end after an interrupt.
const cancelWait = 10 * time.Second

// builder compiles the program of a Recipe.
type builder struct {
	recipe    Recipe
	env       string // name of the environment variable that contains a directory with the programs
	report    *Reporter
	lookPath  func(string) (string, error)
	freeBytes func(dir string) (uint64, error)
}

// build compiles the program into dir, and creates a link to the program for each name.
func (b *builder) build(ctx context.Context, dir string) error {
	src, err := os.MkdirTemp(dir, "src-")
	if err != nil {
		return fmt.Errorf("make source directory: %w", err)
	}
	if err := b.recipe.write(src); err != nil {
		return err
	}
	g := goCommand{dir: src, hostCgo: b.recipe.HostCgo}
	if g.path, err = b.lookPath("go"); err != nil {
		return fmt.Errorf("the go command is missing: install Go 1.26 or newer, or set %s (%w)", b.env, err)
	}
	if err := b.check(ctx, g); err != nil {
		return err
	}
	b.report.Printf("%s", b.recipe.Notice)
	if err := b.runBuild(ctx, g, filepath.Join(dir, b.recipe.Program)); err != nil {
		return err
	}
	for _, name := range b.recipe.Names {
		if err := os.Symlink(b.recipe.Program, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("link binary: %w", err)
		}
	}
	if err := os.RemoveAll(src); err != nil {
		return fmt.Errorf("remove source directory: %w", err)
	}
	return nil
}

// check returns an error if there is no usable go command or not enough disk space. Without this check, the build would
// fail only after a long time.
func (b *builder) check(ctx context.Context, g goCommand) error {
	out, err := g.runWithOutput(ctx, "env", "GOVERSION", "GOCACHE", "GOMODCACHE")
	if err != nil {
		return fmt.Errorf("the go command cannot be used: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 {
		return fmt.Errorf("go env: want 3 lines, got %q", out)
	}
	for _, dir := range lines[1:] {
		free, err := b.freeBytes(findExistingParent(strings.TrimSpace(dir)))
		if err != nil {
			return err
		}
		if free < b.recipe.Space {
			return fmt.Errorf("not enough disk space in %s: %.1f GiB are free, but the build needs %d GiB", dir, float64(free)/(1<<30), b.recipe.Space>>30)
		}
	}
	return nil
}

// runBuild runs go build and shows its progress.
func (b *builder) runBuild(ctx context.Context, g goCommand, target string) error {
	p := &progress{displayName: b.recipe.DisplayName, module: b.recipe.Module}
	stop := b.startProgress(p)
	defer stop()
	packages, err := g.run(ctx, p, "list", "-deps", ".")
	if err == nil {
		p.setTotal(strings.Count(packages, "\n"))
		_, err = g.run(ctx, p, append(append([]string{"build", "-v"}, b.recipe.Flags...), "-o", target, ".")...)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("go build: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("go build: %w: %s", err, findCause(p.getMessages()))
	}
	return nil
}

// startProgress reports the progress until the returned function is called.
func (b *builder) startProgress(p *progress) (stop func()) {
	end := b.report.startStatus(p.formatStatus)
	return func() { b.report.Printf("building %s took %s", b.recipe.DisplayName, end().Round(time.Second)) }
}

// goCommand runs the go command in the module of the recipe.
type goCommand struct {
	path, dir string
	hostCgo   bool
}

// runWithOutput runs the go command and returns its standard output. If the command fails, the error contains an
// explanation from findCause.
func (g goCommand) runWithOutput(ctx context.Context, args ...string) (string, error) {
	p := &progress{}
	out, err := g.run(ctx, p, args...)
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, findCause(p.getMessages()))
	}
	return out, nil
}

func (g goCommand) run(ctx context.Context, p *progress, args ...string) (string, error) {
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, g.path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = g.dir, goEnvironment(os.Environ(), g.hostCgo), &stdout, p
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = cancelWait
	err := cmd.Run()
	return stdout.String(), err
}

// goEnvironment returns a copy of env for the build of another module. It overrides the settings that could make the
// build fail or change its result: flags, workspace, target platform and, unless hostCgo is true, cgo. It also lets the
// compiler use more memory, which makes the build a fifth faster.
func goEnvironment(env []string, hostCgo bool) []string {
	set := map[string]string{
		"GO111MODULE":  "on",
		"GOARCH":       runtime.GOARCH,
		"GOEXPERIMENT": "",
		"GOGC":         "400",
		"GOFLAGS":      "-mod=readonly", // not empty, because otherwise the flags of `go env -w` would apply
		"GOOS":         runtime.GOOS,
		"GOWORK":       "off",
	}
	if !hostCgo {
		set["CGO_ENABLED"] = "0"
	}
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if _, overridden := set[name]; !overridden {
			out = append(out, kv)
		}
	}
	for name, value := range set {
		out = append(out, name+"="+value)
	}
	return out
}

// findCause returns one line that explains why the go command failed. The line describes the cause if it is known.
// Otherwise it is the last message of the command.
func findCause(messages []string) string {
	last := "no message"
	for _, m := range messages {
		switch {
		case strings.Contains(m, "no space left on device"):
			return "the disk is full: " + m
		case strings.Contains(m, "GOTOOLCHAIN=local") && strings.Contains(m, "requires go"):
			return "the go command is too old, Go 1.26 or newer is needed: " + m
		case containsAny(m, "no such host", "connection refused", "i/o timeout", "network is unreachable", "server misbehaving"):
			return "no Go module proxy within reach (see GOPROXY): " + m
		case containsAny(m, "module lookup disabled", "proxy=off"):
			return "GOPROXY=off and the modules are not in the module cache: " + m
		case m != "":
			last = m
		}
	}
	return last
}

func containsAny(s string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// findExistingParent returns dir or, if dir does not exist yet, its nearest existing parent.
func findExistingParent(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
