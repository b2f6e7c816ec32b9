// SPDX-License-Identifier: Apache-2.0

package deployer

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/deployerkit/deployerkit/cmd/internal/terminal"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Program is a deployer that wants to be a program.
type Program struct {
	// Name is the name of the program.
	Name string
	// Short says in one line what it does.
	Short string
	// Flags registers flags that only this program has; nil: none. They are
	// parsed when Args is called.
	Flags func(*pflag.FlagSet)
	// Args makes the deployer. configFile: what --config names, empty for
	// none; see [ReadConfig]. Item selector and grace period are set from the
	// flags afterwards; so are the workers, unless Args has set them and
	// --workers was not given.
	Args func(configFile string) (deployerlib.DeployerArgs, error)
}

// Main runs the program with the process's arguments until SIGTERM or SIGINT;
// a second signal ends the process at once. It returns the exit code and may
// be called once per process.
func Main(p Program) int {
	return exitCode(Command(p).ExecuteContext(ctrl.SetupSignalHandler()))
}

// exitCode is 0 without an error. The error was printed by cobra.
func exitCode(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

// Command returns the command of the program. It runs until its context ends.
func Command(p Program) *cobra.Command {
	f := newFlags()
	cmd := &cobra.Command{
		Use: p.Name, Short: p.Short, Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), p, f) },
	}
	cmd.SetErr(terminal.Writer(os.Stderr))
	f.addTo(cmd.Flags())
	if p.Flags != nil {
		p.Flags(cmd.Flags())
	}
	return cmd
}

// run wires everything and works until ctx ends.
func run(ctx context.Context, p Program, f *flags) error {
	log := zap.New(zap.UseFlagOptions(&f.zap))
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	args, err := f.args(p)
	if err != nil {
		return err
	}
	ls, host, err := f.managers(log, args)
	if err != nil {
		return err
	}
	if err := deployerlib.Add(log, ls, host, args); err != nil {
		return err
	}
	log.Info("starting", "deployer", args.Name, "type", string(args.Type), "version", args.Version)
	if err := ls.Start(ctx); err != nil {
		return fmt.Errorf("run %s: %w", p.Name, err)
	}
	log.Info("stopped")
	return nil
}
