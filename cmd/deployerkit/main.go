// SPDX-License-Identifier: Apache-2.0

// Command deployerkit creates the repository of a new deployer (`deployerkit init`), runs a deployer on a local control
// plane (`deployerkit run`), checks a deployer against Landscaper's contract (`deployerkit conformance`), shows what a
// deploy item would change (`deployerkit plan`), explains the state of one (`deployerkit explain`), shows what belongs to
// it (`deployerkit tree`), and demonstrates the library (`deployerkit demo`).
//
// Under the name kubectl-deployer it is a plugin of kubectl with the commands explain, tree and plan.
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
	"github.com/deployerkit/deployerkit/internal/buildinfo"
	"github.com/deployerkit/deployerkit/internal/terminal"
)

func main() {
	root := command
	if isPlugin(os.Args[0]) {
		root = plugin
	}
	os.Exit(exitCode(root(os.Stdout, os.Stderr).ExecuteContext(ctrl.SetupSignalHandler())))
}

// isPlugin reports whether the program was called as a plugin of kubectl.
func isPlugin(program string) bool {
	return strings.HasPrefix(filepath.Base(program), "kubectl-") || strings.HasPrefix(filepath.Base(program), "kubectl_")
}

// plugin returns the command of the plugin.
func plugin(out, err io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-deployer", Short: "Explains deploy items of Landscaper", SilenceUsage: true, Version: buildinfo.Text(),
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl deployer"},
	}
	return assemble(root, out, err, quiet(explain.Command()), quiet(tree.Command()), quiet(plan.Command()))
}

// command returns the root command with all subcommands. Those that print texts of servers and items get writers that
// escape control characters. The demo has its own items and draws on the terminal.
func command(out, err io.Writer) *cobra.Command {
	root := &cobra.Command{Use: "deployerkit", Short: "Creates, runs and checks deployers", SilenceUsage: true}
	assemble(root, out, err, quiet(plan.Command()), quiet(explain.Command()), quiet(tree.Command()), quiet(conformance.Command()), quiet(run.Command()))
	root.AddCommand(demoCommand(), scaffold.Command(), versionCommand())
	return root
}

// assemble adds commands that show texts of servers and items.
func assemble(root *cobra.Command, out, err io.Writer, commands ...*cobra.Command) *cobra.Command {
	root.SetOut(out)
	root.SetErr(terminal.Writer(err))
	for _, shows := range commands {
		shows.SetOut(terminal.Writer(out))
		root.AddCommand(shows)
	}
	return root
}

// exitCode returns 0 without an error, 2 for a plan with something to do and for wrong usage, and 1 for other errors.
func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, plan.ErrToDo), errors.Is(err, conformance.ErrUsage), errors.Is(err, scaffold.ErrUsage), errors.Is(err, run.ErrUsage):
		return 2
	}
	return 1
}

func demoCommand() *cobra.Command {
	var o demo.Options
	var logFile string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the mock and the manifest deployer on a local control plane, and check every outcome",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logTo(logFile); err != nil {
				return err
			}
			o.Out = cmd.OutOrStdout()
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.Landscaper, "landscaper", false, "install, change and delete Installations under the real Landscaper; the first time builds it (about 5 minutes)")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave everything running at the end until Ctrl-C")
	cmd.Flags().StringVar(&logFile, "log-file", "", "file for the log of the deployer (default: nothing is logged)")
	return cmd
}

// quiet makes a command log nothing. Its errors say what went wrong, and a deployer has its own log.
func quiet(cmd *cobra.Command) *cobra.Command {
	cmd.PreRunE = func(*cobra.Command, []string) error { return logTo("") }
	return cmd
}

// logTo sends the logs of all libraries to a file, because they would disturb the screen.
func logTo(path string) error {
	log := logr.Discard()
	if path != "" {
		f, err := os.Create(path) //nolint:gosec // the user says which file
		if err != nil {
			return fmt.Errorf("open log file: %w", err)
		}
		log = zap.New(zap.WriteTo(f), zap.ConsoleEncoder())
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "deployerkit", buildinfo.Text()) },
	}
}
