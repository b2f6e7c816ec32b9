// SPDX-License-Identifier: Apache-2.0

// Command deployerkit creates the repository of a new deployer (`deployerkit init`), runs a deployer on a local control
// plane (`deployerkit run`), checks a deployer against Landscaper's contract (`deployerkit conformance`), shows what a
// deploy item would change (`deployerkit plan`), explains the state of a deploy item (`deployerkit explain`), shows the
// objects that belong to a deploy item or an Installation (`deployerkit tree`), shows all of this on a web page
// (`deployerkit ui`), and demonstrates the library (`deployerkit demo`).
//
// If the program is installed as kubectl-deployer, it is a kubectl plugin with the commands explain, tree, plan and ui.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/demo"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/explain"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/run"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/scaffold"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/tree"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/ui"
	"github.com/deployerkit/deployerkit/cmd/internal/interrupt"
	"github.com/deployerkit/deployerkit/internal/buildinfo"
	"github.com/deployerkit/deployerkit/internal/terminal"
)

func main() {
	root := newRootCommand
	if isPlugin(os.Args[0]) {
		root = newPluginCommand
	}
	os.Exit(getExitCode(root(os.Stdout, os.Stderr).ExecuteContext(interrupt.NewContext())))
}

// isPlugin reports whether the program, which was called with the path program, was called as a kubectl plugin.
func isPlugin(program string) bool {
	return strings.HasPrefix(filepath.Base(program), "kubectl-") || strings.HasPrefix(filepath.Base(program), "kubectl_")
}

// newPluginCommand returns the root command of the kubectl plugin.
func newPluginCommand(out, err io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-deployer", Short: "Explains deploy items of Landscaper", SilenceUsage: true, Version: buildinfo.GetVersion(),
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl deployer"},
	}
	return addCommands(root, out, err, discardLogs(explain.NewCommand()), discardLogs(tree.NewCommand()), discardLogs(plan.Command()), discardLogs(ui.NewCommand()))
}

// newRootCommand returns the root command with all subcommands. Most subcommands print texts from servers and items, so
// their writers escape control characters. The writers of the demo do not, because the demo prints only its own items
// and needs control characters to draw on the terminal.
func newRootCommand(out, err io.Writer) *cobra.Command {
	root := &cobra.Command{Use: "deployerkit", Short: "Creates, runs and checks deployers", SilenceUsage: true}
	addCommands(root, out, err, discardLogs(plan.Command()), discardLogs(explain.NewCommand()), discardLogs(tree.NewCommand()), discardLogs(ui.NewCommand()), discardLogs(conformance.NewCommand()), discardLogs(run.NewCommand()))
	root.AddCommand(newDemoCommand(), scaffold.NewCommand(), newVersionCommand())
	return root
}

// addCommands adds commands to the command `root`. It gives them writers that escape control characters, because the
// commands print texts from servers and items.
func addCommands(root *cobra.Command, out, err io.Writer, commands ...*cobra.Command) *cobra.Command {
	root.SetOut(out)
	root.SetErr(terminal.NewWriter(err))
	for _, shows := range commands {
		shows.SetOut(terminal.NewWriter(out))
		root.AddCommand(shows)
	}
	return root
}

// getExitCode returns the exit code for an error: 0 for nil, 2 for wrong usage and for a plan with changes, and 1 for
// all other errors.
func getExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, plan.ErrToDo), errors.Is(err, conformance.ErrUsage), errors.Is(err, scaffold.ErrUsage), errors.Is(err, run.ErrUsage):
		return 2
	}
	return 1
}

func newDemoCommand() *cobra.Command {
	var o demo.Options
	var logFile string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the mock and the manifest deployer on a local control plane, and check every outcome",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := setLogFile(logFile); err != nil {
				return err
			}
			o.Out = cmd.OutOrStdout()
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.Landscaper, "landscaper", false, "install, change and delete Installations with the real Landscaper, which is built the first time (about 5 minutes)")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave everything running at the end until Ctrl-C")
	cmd.Flags().BoolVar(&o.Keep, "stay", false, "the same as --keep: the page and everything else stay until Ctrl-C")
	cmd.Flags().StringVar(&logFile, "log-file", "", "file for the log of the deployer (default: nothing is logged)")
	return cmd
}

// discardLogs disables the log of a command. The log is not needed: errors of the command say what went wrong, and a
// deployer writes its own log.
func discardLogs(cmd *cobra.Command) *cobra.Command {
	cmd.PreRunE = func(*cobra.Command, []string) error { return setLogFile("") }
	return cmd
}

// setLogFile makes all libraries write their logs to a file, because log lines would disturb the display. If the path
// is empty, setLogFile discards the logs.
func setLogFile(path string) error {
	log := logr.Discard()
	if path != "" {
		f, err := os.Create(path) //nolint:gosec // the user chooses the file
		if err != nil {
			return fmt.Errorf("open log file: %w", err)
		}
		log = zap.New(zap.WriteTo(f), zap.ConsoleEncoder())
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return nil
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), "deployerkit", buildinfo.GetVersion())
		},
	}
}
