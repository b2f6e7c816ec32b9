// SPDX-License-Identifier: Apache-2.0

// Package run implements `deployerkit run`. The command starts a control plane and a deployer, and creates the objects
// in the given files. For a deploy item, it simulates Landscaper. For an Installation, it starts the real Landscaper.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/internal/heartbeat"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
)

// ErrUsage is returned for an invalid flag or file, before anything was started.
var ErrUsage = errors.New("wrong usage")

// usageError is an error that matches ErrUsage but has a different text.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }

func (e usageError) Unwrap() error { return e.error }

const long = `Start a control plane with Landscaper's definitions on this machine, start a deployer, create the objects of files, and show
the phases of the deploy items until Ctrl-C.

The deployer is the command after --. $KUBECONFIG refers to the control plane. Leader election should be disabled.

With --item, the command simulates Landscaper: it creates the Context of the item and gives the item a job. With
--installation, it starts the real Landscaper. The first time, it builds Landscaper, which takes about 5 minutes. In the
spec.config of a Target, the string {kubeconfig} is replaced with the content of a kubeconfig for the control plane.

Exit codes: 0 after Ctrl-C, or if all items succeeded with --once, 1 after a failure, 2 wrong usage.`

const example = `  deployerkit run --item examples/deployitem.yaml --target examples/target.yaml -- bin/my-deployer --leader-elect=false
  deployerkit run --installation examples/installation.yaml --once -- bin/my-deployer --leader-elect=false`

// options contains the values of the flags and arguments.
type options struct {
	item, target, installation string // each is the name of a file
	once                       bool
	timeout                    time.Duration
	command                    []string
}

// NewCommand returns the command `run`. The command writes the phases of deploy items to its standard output, and the
// output of the deployer to its error output.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "run (--item FILE | --installation FILE) -- COMMAND", Short: "Run a deployer on a local control plane, and deploy a file",
		Long: long, Example: example, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.command = args
			files, err := o.read(cmd.InOrStdin())
			if err != nil {
				return usageError{err}
			}
			return o.run(cmd, files)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	fs := cmd.Flags()
	fs.StringVar(&o.item, "item", "", "file with a deploy item")
	fs.StringVar(&o.target, "target", "", "file with the Target of the item or the Installation")
	fs.StringVar(&o.installation, "installation", "", "file with an Installation and the objects that it imports, for the real Landscaper")
	fs.BoolVar(&o.once, "once", false, "exit when the deploy items have finished")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "with --once, how long the deploy items may take to finish")
	return cmd
}

// read reads the files and validates the flags and arguments.
func (o *options) read(stdin io.Reader) (*files, error) {
	if (o.item == "") == (o.installation == "") {
		return nil, errors.New("--item, --installation: set exactly one of them")
	}
	if len(o.command) == 0 {
		return nil, errors.New("the command of the deployer is required after --")
	}
	if _, err := exec.LookPath(o.command[0]); err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	return readFiles(o, stdin)
}

// run starts all programs, follows the deploy items, and stops all programs.
func (o *options) run(cmd *cobra.Command, files *files) (err error) {
	ctx := cmd.Context()
	state := &state{}
	if err := o.findPrograms(ctx, cmd.ErrOrStderr()); err != nil {
		return ignoreInterrupt(ctx, err)
	}
	progress := heartbeat.Start(cmd.ErrOrStderr(), cmd.ErrOrStderr(), state.formatText)
	defer progress.Stop()
	env, err := start(ctx, o, files, progress, state)
	if err != nil {
		return ignoreInterrupt(ctx, err)
	}
	defer func() { err = errors.Join(err, env.stop()) }()
	fmt.Fprintf(progress, "run: to look around, in another terminal: export KUBECONFIG=%s\n", env.kubeconfig)
	for _, command := range files.getCommands(getProgram()) {
		fmt.Fprintf(progress, "run: then: %s\n", command)
	}
	if !o.once {
		progress.Stop() // from now on, it is normal if there is no output for hours
	}
	return ignoreInterrupt(ctx, env.printPhases(ctx, cmd.OutOrStdout(), state))
}

// findPrograms finds or builds the binaries of the control plane and of Landscaper, and writes lines about this to
// `progress`.
func (o *options) findPrograms(ctx context.Context, progress io.Writer) error {
	_, err := controlplane.FindAssets(ctx, controlplane.AssetsOptions{ControllerManager: o.installation != "", Progress: progress})
	if err == nil && o.installation != "" {
		_, err = landscaper.FindPrograms(ctx, progress)
	}
	return err
}

// ignoreInterrupt returns err. If the user has pressed Ctrl-C, it returns nil.
func ignoreInterrupt(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
