// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/deployerkit/deployerkit/internal/heartbeat"
)

// ErrUsage is returned if an argument is invalid or a file already exists. In both cases, no file was written.
var ErrUsage = errors.New("wrong usage")

// usageError is an error that matches ErrUsage but has a different text.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }

func (e usageError) Unwrap() error { return e.error }

const long = `Create the repository of a new deployer: go.mod, a program, a deployer with a configuration and its validation, tests
(unit tests, tests with a real API server, conformance tests), a Makefile, examples, RBAC rules, a CI workflow, a licence
and a README. You can change all files, because they are not generated again.

The styles are:
  plain        you implement what the deployer does for an item, and export values for other Installations
  declarative  you return the objects that an item describes
  graph        you declare components and the requirements between them

The command never changes existing files. If one of the files already exists, it fails and writes nothing. After writing
the files, it runs "go mod tidy".

If this program is a development build, it adds a line to go.mod that replaces DeployerKit with the checkout of the build.

Exit codes: 0 the repository is ready, 1 it was created but "go mod tidy" failed, 2 wrong usage.`

const example = `  deployerkit init example.org/password --module example.org/password-deployer --dir password-deployer
  deployerkit init example.org/database --style graph --module example.org/database-deployer --license mit --owner 'Jane Doe'`

// options contains the values of the flags and arguments.
type options struct {
	project

	dir         string
	deployerKit string
	out, err    io.Writer
}

// NewCommand returns the command `init`. If the command fails, it returns ErrUsage, an error of the file system, or an
// error of go mod tidy.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "init TYPE --module PATH", Short: "Create the repository of a new deployer", Long: long, Example: example, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return usageError{fmt.Errorf("%w: the type of the deploy items, such as example.org/password", err)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Type, o.Year = args[0], time.Now().Year()
			o.out, o.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return o.run(cmd.Context())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	fs := cmd.Flags()
	fs.StringVar(&o.Module, "module", "", "path of the Go module; required")
	fs.StringVar(&o.Style, "style", "plain", strings.Join(styles, ", "))
	fs.StringVar(&o.dir, "dir", ".", "directory of the repository; it is created if it does not exist")
	fs.StringVar(&o.License, "license", "apache-2.0", strings.Join(slices.Sorted(maps.Keys(licenses)), ", "))
	fs.StringVar(&o.Owner, "owner", "", "owner of the copyright in the MIT License (default: the authors of the deployer)")
	fs.StringVar(&o.deployerKit, "deployerkit", "",
		"checkout of DeployerKit to use instead of a release (default: none; for a development build of deployerkit, the checkout of the build)")
	return cmd
}

// run writes the files, and then runs go mod tidy to complete go.mod.
func (o *options) run(ctx context.Context) error {
	if err := o.complete(); err != nil {
		return usageError{err}
	}
	info, _ := debug.ReadBuildInfo()
	var err error
	if o.source, err = findSource(o.deployerKit, info); err != nil {
		return usageError{err}
	}
	files, err := o.render()
	if err != nil {
		return err
	}
	if err := write(o.dir, files); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "Wrote %d files to %s.\n", len(files), o.dir)
	if o.Replace != "" {
		fmt.Fprintf(o.out, "go.mod replaces DeployerKit with the checkout %s.\n", o.Replace)
	}
	if err := o.runGoModTidy(ctx); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "Next, in %s: make test, make run. Then change config.go and deployer.go.\n", o.dir)
	return nil
}

// runGoModTidy runs go mod tidy, which may download modules.
func (o *options) runGoModTidy(ctx context.Context) error {
	beat := heartbeat.Start(o.err, o.err, func(elapsed time.Duration) string {
		return fmt.Sprintf("init: go mod tidy is running, %s", elapsed)
	})
	defer beat.Stop()
	cmd := exec.CommandContext(ctx, "go", "mod", "tidy")
	cmd.Dir = filepath.Clean(o.dir)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	output := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(output.String()), "\n")
		return fmt.Errorf("the files are written, but go mod tidy failed; run it again in %s: %w: %s", o.dir, err, lines[len(lines)-1])
	}
	return nil
}
