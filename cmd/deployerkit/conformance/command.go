// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/internal/heartbeat"
	"github.com/deployerkit/deployerkit/internal/process"
)

// Execute of the command returns these errors, or another error.
var (
	// ErrFailed is returned if a check failed. The report describes the failures.
	ErrFailed = errors.New("the deployer does not fulfil the contract")
	// ErrUsage is returned for an invalid flag or file, before anything was checked.
	ErrUsage = errors.New("wrong usage")
)

// usageError is an error that matches ErrUsage but has a different text.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }

func (e usageError) Unwrap() error { return e.error }

const long = `Check whether a deployer fulfils the contract between Landscaper and its deployers. The command starts the deployer,
simulates Landscaper, watches every change of the deploy items, and reports what was expected and what was observed. The
deployer can be written in any language.

--command is the command line that starts the deployer. It is split into words at spaces. Quotes and backslashes work as in
a shell; variables and pipes do not. {kubeconfig} is replaced with the path of a kubeconfig file. The environment variable
KUBECONFIG contains the same path. Leader election should be disabled or fast, because the deployer is killed and started
again.

The checks create their own deploy items. They use only the type and the configuration of the items in the files. In strings
of a configuration, {namespace} and {name} are replaced with the namespace and the name of the created item. In strings of
the invalid configuration, {note} is replaced with a text, which is long in one of the checks. In strings of the Target,
{kubeconfig} is replaced with the content of a kubeconfig for the cluster of the items.

Without --kubeconfig, a control plane is started for each revision of the contract. With --kubeconfig, the checks run on an
existing cluster, in which Landscaper's definitions must be installed. The checks create namespaces and delete them
afterwards. Neither Landscaper nor another deployer of the same type may run in that cluster.

Exit codes: 0 all applicable checks passed, 1 a check failed or the deployer cannot be checked, 2 wrong usage.`

const example = `  deployerkit conformance --item item.yaml --command 'bin/my-deployer --kubeconfig={kubeconfig} --leader-elect=false'
  deployerkit conformance --item item.yaml --invalid-item invalid.yaml --slow-item slow.yaml --target target.yaml \
    --deployed-command 'kubectl get configmap {name} -n {namespace}' --kubeconfig test.kubeconfig --junit report.xml \
    --except 'job-id/abort=it cannot be stopped' --command bin/my-deployer`

// NewCommand returns the command `conformance`. The command writes the report to its standard output. It writes each
// result to its error output as soon as the result is known. The command returns ErrFailed, ErrUsage or another error.
func NewCommand() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use: "conformance --command COMMAND --item FILE", Short: "Check whether a deployer fulfils the contract",
		Long: long, Example: example, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return usageError{fmt.Errorf("%w; quote the whole value of --command", err)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := f.run(cmd.Context(), cmd)
			cmd.SilenceErrors = err == ErrFailed //nolint:errorlint // alone, for the report ends with what failed
			return err
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	f.addTo(cmd.Flags())
	return cmd
}

// run checks the deployer and writes the report.
func (f *flags) run(ctx context.Context, cmd *cobra.Command) error {
	subject, err := f.newSubject(cmd.InOrStdin())
	if err == nil {
		err = subject.Validate()
	}
	if err != nil {
		return usageError{err}
	}
	logs, close, err := f.openLog()
	if err != nil {
		return usageError{err}
	}
	defer close()
	output := process.NewTail(maxOutput, logs)
	subject.Logs = output
	if f.kubeconfig == "" {
		if _, err := controlplane.FindAssets(ctx, controlplane.AssetsOptions{Progress: cmd.ErrOrStderr()}); err != nil {
			return err
		}
	}
	report, err := execute(ctx, subject, cmd.ErrOrStderr())
	if err != nil && output.String() != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "last output of the deployer:\n%s\n", output)
	}
	if err != nil && report.CountOutcome(conformance.OutcomePass)+report.CountOutcome(conformance.OutcomeFail) == 0 {
		return err // there are no results to report
	}
	if err := errors.Join(err, f.writeReport(cmd.OutOrStdout(), report)); err != nil {
		return errors.Join(err, checkReport(report))
	}
	return checkReport(report)
}

// execute runs the checks and writes each result as soon as it is known. If there is no new result for a while, execute
// writes the number of results so far.
func execute(ctx context.Context, subject conformance.Subject, w io.Writer) (*conformance.Report, error) {
	var done atomic.Int64
	progress := heartbeat.Start(w, w, func(elapsed time.Duration) string {
		return fmt.Sprintf("conformance: %d checks done, %s", done.Load(), elapsed)
	})
	defer progress.Stop()
	subject.Observe = func(r conformance.Result) {
		if r.Outcome != conformance.OutcomeNotApplicable {
			done.Add(1)
			fmt.Fprintln(progress, r.Format())
		}
	}
	return conformance.Execute(ctx, subject)
}

// maxOutput is how many bytes of the deployer's last output are shown if the deployer cannot be checked.
const maxOutput = 4 << 10

// openLog opens the file for the output of the deployer. If the user did not specify a file, the result `logs` is nil.
func (f *flags) openLog() (logs io.Writer, done func(), err error) {
	if f.logFile == "" {
		return nil, func() {}, nil
	}
	file, err := os.Create(f.logFile)
	if err != nil {
		return nil, nil, fmt.Errorf("--log-file: %w", err)
	}
	return file, func() { _ = file.Close() }, nil
}

// writeReport writes the report to the outputs that the user selected.
func (f *flags) writeReport(out io.Writer, report *conformance.Report) error {
	err := report.WriteTable(out)
	if f.junit == "" {
		return err
	}
	file, fault := os.Create(f.junit)
	if fault != nil {
		return errors.Join(err, fmt.Errorf("--junit: %w", fault))
	}
	return errors.Join(err, report.WriteJUnit(file), file.Close())
}

// checkReport returns ErrFailed if a check failed.
func checkReport(report *conformance.Report) error {
	if report.CountOutcome(conformance.OutcomeFail) > 0 {
		return ErrFailed
	}
	return nil
}
