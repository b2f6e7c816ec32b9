// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/internal/buildinfo"
	"github.com/deployerkit/deployerkit/internal/terminal"
)

// Program describes the program of a deployer. Only Args or NewArgs is mandatory.
type Program struct {
	// Name is the name of the program in its help and its errors. Default: the name of the executable file.
	Name string
	// Short says in one line what the program does.
	Short string
	// Version is what --version prints. Default: the version of the build.
	Version string

	// Args are the arguments of the deployer. What the flags and the configuration file say is set on a copy. A
	// TracerProvider makes the program send spans.
	Args deployerlib.DeployerArgs
	// NewArgs replaces Args where the deployer depends on flags or on the configuration file. It is called
	// once, after both were read.
	NewArgs func() (deployerlib.DeployerArgs, error)
	// Flags registers flags of this program, in addition to the common ones.
	Flags func(*pflag.FlagSet)
	// Config takes the content of the file that --config names: a pointer to a struct that embeds
	// [Configuration] and adds fields. Default: a *Configuration.
	Config Config
	// ConfigKinds are the kinds that the file may have. Default: kind Configuration of every group.
	ConfigKinds []schema.GroupVersionKind
	// Commands are further commands of the program. Without one, the program runs the deployer. An error with a method
	// ExitCode() int has been printed already and ends the process with that code.
	Commands []*cobra.Command
}

// exitCoder is implemented by errors of commands that end the process with a code other than 1.
type exitCoder interface {
	error

	ExitCode() int
}

// Run runs the program with the arguments of the process until SIGTERM or SIGINT and ends the process. A second signal
// ends it at once.
func Run(p Program) { os.Exit(Main(p)) }

// Main is like [Run] but returns the exit code. Call it once per process.
func Main(p Program) int {
	klog.SetLogger(ctrl.Log.WithName("client-go")) // not in run, because it races with clients that are in use
	cmd := Command(p)
	return report(cmd.ErrOrStderr(), cmd.Name(), cmd.ExecuteContext(ctrl.SetupSignalHandler()))
}

// report prints an error as one line and returns the exit code. An [exitCoder] has printed what it has to say.
func report(w io.Writer, name string, err error) int {
	if err == nil {
		return 0
	}
	if coder, ok := errors.AsType[exitCoder](err); ok {
		return coder.ExitCode()
	}
	fmt.Fprintf(w, "%s: %s\n", name, contract.EscapeBidi(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")))
	return 1
}

// Command returns the command of the program. It runs until its context ends, and leaves it to the caller to print the
// error. It sets the logger of controller-runtime. That of klog, which client-go uses, is left to the caller, because
// klog does not allow to change it while clients are in use; [Main] sets it.
func Command(p Program) *cobra.Command {
	p.Name = cmp.Or(p.Name, filepath.Base(os.Args[0]))
	f := newFlags()
	cmd := &cobra.Command{
		Use: p.Name, Short: p.Short, Version: cmp.Or(p.Version, buildinfo.Text()),
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), p, f) },
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetErr(terminal.Writer(os.Stderr))
	f.addTo(cmd.Flags())
	if p.Flags != nil {
		p.Flags(cmd.Flags())
	}
	cmd.AddCommand(p.Commands...)
	return cmd
}

// run wires everything and works until ctx ends.
func run(ctx context.Context, p Program, f *flags) error {
	log, err := f.logs.logger()
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	args, noEffect, err := f.args(p)
	if err != nil {
		return err
	}
	if len(noEffect) > 0 {
		log.Info("these fields of the configuration file have no effect in this deployer", "fields", noEffect)
	}
	options, access := f.options, readAccess(f.kubeconfig, f.landscaperKubeconfig)
	if options.Host, options.Landscaper, err = f.clusters(os.LookupEnv); err != nil {
		return err
	}
	options.Logger = log
	ls, host, err := NewManagers(options, &args)
	if err != nil {
		return err
	}
	if err := deployerlib.Add(log, ls, host, args); err != nil {
		return err
	}
	log.Info("starting", "deployer", args.Name, "type", string(args.Type), "version", args.Version)
	ctx, stop := access.endOnChange(ctx, log, clock.RealClock{})
	defer stop()
	if err := ls.Start(ctx); err != nil {
		return fmt.Errorf("run %s: %w", p.Name, err)
	}
	log.Info("stopped")
	return nil
}

// args makes the deployer's arguments and puts on them what flags and configuration file say. noEffect are the fields
// of the file that have none.
func (f *flags) args(p Program) (args deployerlib.DeployerArgs, noEffect []string, err error) {
	if err := f.validate(); err != nil {
		return args, nil, err
	}
	config := p.Config
	if config == nil {
		config = &Configuration{}
	}
	if err := readConfiguration(f.config, config, p.ConfigKinds); err != nil {
		return args, nil, err
	}
	args = p.Args
	if p.NewArgs != nil {
		if args, err = p.NewArgs(); err != nil {
			return args, nil, err
		}
	}
	common := config.common()
	common.applyTo(&args)
	if err := f.applyTo(&args); err != nil {
		return args, nil, err
	}
	args.Default()
	return args, common.noEffect(), args.Validate()
}
