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

// Program describes the program of a deployer. Either Args or NewArgs is required.
type Program struct {
	// Name is the name of the program in help and errors. The default is the name of the executable.
	Name string
	// Short describes in one line what the program does.
	Short string
	// Version is printed by --version. The default is the version of the build.
	Version string

	// Args are the arguments of the deployer. Flags and the configuration file change a copy of Args. If the
	// TracerProvider is nil and the OpenTelemetry variables (such as OTEL_EXPORTER_OTLP_ENDPOINT) contain an endpoint,
	// the program exports traces to this endpoint.
	Args deployerlib.DeployerArgs
	// NewArgs replaces Args if the deployer depends on flags or on the configuration file. NewArgs is called once, after
	// the flags and the file were read.
	NewArgs func() (deployerlib.DeployerArgs, error)
	// Flags registers the flags of this program, in addition to the common flags.
	Flags func(*pflag.FlagSet)
	// Config receives the content of the file that --config names. It is a pointer to a struct that embeds
	// [Configuration] and adds fields. The default is a *Configuration.
	Config Config
	// ConfigKinds are the kinds that the configuration file may have. The default is the kind Configuration of any group.
	ConfigKinds []schema.GroupVersionKind
	// Commands are subcommands of the program. Without a subcommand, the program runs the deployer. If the error of a
	// subcommand has a method ExitCode() int, the error is not printed, and the process ends with that code.
	Commands []*cobra.Command
}

// exitCoder is implemented by errors of commands that end the process with a code other than 1.
type exitCoder interface {
	error

	ExitCode() int
}

// Run runs the program with the arguments of the process until SIGTERM or SIGINT, and then ends the process. A second
// signal ends it immediately.
func Run(p Program) { os.Exit(Main(p)) }

// Main is like [Run] but returns the exit code. Call it at most once per process.
func Main(p Program) int {
	klog.SetLogger(ctrl.Log.WithName("client-go")) // set before any client is created, because clients use this logger
	cmd := Command(p)
	return printError(cmd.ErrOrStderr(), cmd.Name(), cmd.ExecuteContext(ctrl.SetupSignalHandler()))
}

// printError prints an error as one line and returns the exit code. It does not print an exitCoder, because the command
// has already printed its message.
func printError(w io.Writer, name string, err error) int {
	if err == nil {
		return 0
	}
	if coder, ok := errors.AsType[exitCoder](err); ok {
		return coder.ExitCode()
	}
	fmt.Fprintf(w, "%s: %s\n", name, contract.EscapeBidi(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")))
	return 1
}

// Command returns the command of the program. The command runs until its context is done and does not print its error.
// It sets the logger of controller-runtime, but not the logger of klog, which client-go uses, because the logger of
// klog must not be changed while clients are in use. [Main] sets the logger of klog.
func Command(p Program) *cobra.Command {
	p.Name = cmp.Or(p.Name, filepath.Base(os.Args[0]))
	f := newFlags()
	cmd := &cobra.Command{
		Use: p.Name, Short: p.Short, Version: cmp.Or(p.Version, buildinfo.GetVersion()),
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), p, f) },
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetErr(terminal.NewWriter(os.Stderr))
	f.addTo(cmd.Flags())
	if p.Flags != nil {
		p.Flags(cmd.Flags())
	}
	cmd.AddCommand(p.Commands...)
	return cmd
}

// run creates the managers, adds the deployer and runs until ctx is done.
func run(ctx context.Context, p Program, f *flags) error {
	log, err := f.logs.newLogger()
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	provider, end, err := newTracerProvider(ctx, p.Name, log, os.LookupEnv)
	if err != nil {
		return err
	}
	defer end()
	if provider != nil {
		f.tracer = provider
	}
	args, noEffect, err := f.args(p)
	if err != nil {
		return err
	}
	if len(noEffect) > 0 {
		log.Info("these fields of the configuration file have no effect on this deployer", "fields", noEffect)
	}
	options, access := f.options, readAccess(f.kubeconfig, f.landscaperKubeconfig)
	if options.Host, options.Landscaper, err = f.loadConfigs(os.LookupEnv); err != nil {
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
	ctx, stop := access.cancelOnChange(ctx, log, clock.RealClock{})
	defer stop()
	if err := ls.Start(ctx); err != nil {
		return fmt.Errorf("run %s: %w", p.Name, err)
	}
	log.Info("stopped")
	return nil
}

// args returns the arguments of the deployer, with the values of the flags and of the configuration file. The result
// `noEffect` lists the fields of the file that have no effect.
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
	common := config.getConfiguration()
	common.applyTo(&args)
	if err := f.applyTo(&args); err != nil {
		return args, nil, err
	}
	if args.TracerProvider == nil {
		args.TracerProvider = f.tracer
	}
	args.Default()
	return args, common.listIgnoredFields(), args.Validate()
}
