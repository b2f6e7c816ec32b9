// SPDX-License-Identifier: Apache-2.0

// Package run implements `deployerkit run`. It starts a control plane and a deployer, and deploys files there. For
// deploy items it plays Landscaper; for Installations it starts the real Landscaper.
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

// ErrUsage indicates an invalid flag or file. Nothing was started.
var ErrUsage = errors.New("wrong usage")

// usageError is an ErrUsage with its own text.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }

func (e usageError) Unwrap() error { return e.error }

const long = `Start a control plane with Landscaper's definitions on this machine, start a deployer, deploy files, and show the phases of
the deploy items until Ctrl-C.

The deployer is the command after --. It finds the control plane by $KUBECONFIG. Leader election should be off.

With --item the command plays Landscaper: it creates the Context of the item and gives the item a job. With
--installation it starts the real Landscaper, which is built the first time (about 5 minutes). In a Target, a string of
spec.config that is {kubeconfig} is replaced by the content of a kubeconfig of the control plane.

Exit codes: 0 after Ctrl-C, or with --once if all items succeeded, 1 after a failure, 2 wrong usage.`

const example = `  deployerkit run --item examples/deployitem.yaml --target examples/target.yaml -- bin/my-deployer --leader-elect=false
  deployerkit run --installation examples/installation.yaml --once -- bin/my-deployer --leader-elect=false`

// options holds the values of the command line.
type options struct {
	item, target, installation string // files
	once                       bool
	timeout                    time.Duration
	command                    []string
}

// Command returns the command. It writes phases to its output, and the output of the deployer to its error output.
func Command() *cobra.Command {
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
	fs.StringVar(&o.target, "target", "", "file with the Target that the item or the Installation names")
	fs.StringVar(&o.installation, "installation", "", "file with an Installation and what it imports, for the real Landscaper")
	fs.BoolVar(&o.once, "once", false, "exit when the deploy items have finished")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "with --once, how long the deploy items may take to finish")
	return cmd
}

// read reads the files and checks the arguments.
func (o *options) read(stdin io.Reader) (*files, error) {
	if (o.item == "") == (o.installation == "") {
		return nil, errors.New("--item, --installation: want one of them")
	}
	if len(o.command) == 0 {
		return nil, errors.New("want the command of the deployer after --")
	}
	if _, err := exec.LookPath(o.command[0]); err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	return readFiles(o, stdin)
}

// run starts everything, waits, and stops everything.
func (o *options) run(cmd *cobra.Command, files *files) (err error) {
	ctx := cmd.Context()
	state := &state{}
	if err := o.programs(ctx, cmd.ErrOrStderr()); err != nil {
		return interrupted(ctx, err)
	}
	progress := heartbeat.Start(cmd.ErrOrStderr(), cmd.ErrOrStderr(), state.text)
	defer progress.Stop()
	env, err := start(ctx, o, files, progress, state)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, env.stop()) }()
	fmt.Fprintf(progress, "run: to look around, in another terminal: export KUBECONFIG=%s\n", env.kubeconfig)
	if !o.once {
		progress.Stop() // from here on there may be no output for hours
	}
	return interrupted(ctx, env.follow(ctx, cmd.OutOrStdout(), state))
}

// programs finds or builds the control plane and Landscaper. These show their own progress.
func (o *options) programs(ctx context.Context, progress io.Writer) error {
	_, err := controlplane.Assets(ctx, controlplane.AssetsOptions{ControllerManager: o.installation != "", Progress: progress})
	if err == nil && o.installation != "" {
		_, err = landscaper.Programs(ctx, progress)
	}
	return err
}

// interrupted returns err unless it results from Ctrl-C.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
