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

// Errors that say how the command ended.
var (
	// ErrFailed says that the report was written and that a check failed.
	ErrFailed = errors.New("the deployer does not keep the contract")
	// ErrUsage says that a flag or a file is wrong, and that nothing was checked.
	ErrUsage = errors.New("wrong usage")
)

// usageError is an error that is ErrUsage, with a text of its own.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }

func (e usageError) Unwrap() error { return e.error }

const long = `Hold a deployer to the contract between Landscaper and its deployers, from outside: play Landscaper, watch every version
of every deploy item, and report what was promised and what was seen. The deployer may be written in any language.

--command starts the deployer. It is split into words at blanks; quotes and backslashes work as in a shell, variables and
pipes do not. {kubeconfig} becomes the path of a kubeconfig file, which is also in the environment, as KUBECONFIG. Leader
election should be off or fast: the deployer is killed and started again.

Of the items only the type and the configuration count. In texts of the configuration {namespace} and {name} become those
of the item that is made of it, in the invalid one {note} becomes a text that is long in one check. In texts of the
Target {kubeconfig} becomes the content of a kubeconfig of the cluster with the items.

Without --kubeconfig a control plane is started for each revision of the contract. With it the checks run on that cluster,
which needs Landscaper's definitions, in namespaces of their own that are removed afterwards. No Landscaper and no other
deployer of this type may run there.

Exit codes: 0 all checks passed that apply, 1 a check failed or the deployer cannot be checked, 2 wrong usage.`

const example = `  deployerkit conformance --item item.yaml --command 'bin/my-deployer --kubeconfig={kubeconfig} --leader-elect=false'
  deployerkit conformance --item item.yaml --invalid-item invalid.yaml --slow-item slow.yaml --target target.yaml \
    --deployed-command 'kubectl get configmap {name} -n {namespace}' --kubeconfig test.kubeconfig --junit report.xml \
    --except 'job-id/abort=it cannot be stopped' --command bin/my-deployer`

// Command returns the command. It writes the report to its output and each result to its errors as it comes. What it returns
// is ErrFailed, ErrUsage or another error.
func Command() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use: "conformance --command COMMAND --item FILE", Short: "Hold a deployer to the contract, and report what it keeps",
		Long: long, Example: example, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return usageError{fmt.Errorf("%w; quote the words of --command", err)}
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
	subject, err := f.subject(cmd.InOrStdin())
	if err == nil {
		err = subject.Validate()
	}
	if err != nil {
		return usageError{err}
	}
	logs, close, err := f.log()
	if err != nil {
		return usageError{err}
	}
	defer close()
	output := process.NewTail(keptOutput, logs)
	subject.Logs = output
	if f.kubeconfig == "" {
		if _, err := controlplane.Assets(ctx, controlplane.AssetsOptions{Progress: cmd.ErrOrStderr()}); err != nil {
			return err
		}
	}
	report, err := execute(ctx, subject, cmd.ErrOrStderr())
	if err != nil && output.String() != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "the deployer wrote last:\n%s\n", output)
	}
	if err != nil && report.Count(conformance.Pass)+report.Count(conformance.Fail) == 0 {
		return err // there is nothing to report
	}
	if err := errors.Join(err, f.write(cmd.OutOrStdout(), report)); err != nil {
		return errors.Join(err, verdict(report))
	}
	return verdict(report)
}

// execute makes the checks. It writes each result as it comes, and how many there are when none has come for a while.
func execute(ctx context.Context, subject conformance.Subject, w io.Writer) (*conformance.Report, error) {
	var done atomic.Int64
	progress := heartbeat.Start(w, w, func(elapsed time.Duration) string {
		return fmt.Sprintf("conformance: %d checks done, %s", done.Load(), elapsed)
	})
	defer progress.Stop()
	subject.Observe = func(r conformance.Result) {
		if r.Outcome != conformance.NotApplicable {
			done.Add(1)
			fmt.Fprintln(progress, r.Line())
		}
	}
	return conformance.Execute(ctx, subject)
}

// keptOutput is how many bytes of the deployer's output are kept to explain why it cannot be checked.
const keptOutput = 4 << 10

// log opens the file that receives the deployer's output; logs is nil if the user wants none.
func (f *flags) log() (logs io.Writer, done func(), err error) {
	if f.logFile == "" {
		return nil, func() {}, nil
	}
	file, err := os.Create(f.logFile)
	if err != nil {
		return nil, nil, fmt.Errorf("--log-file: %w", err)
	}
	return file, func() { _ = file.Close() }, nil
}

// write writes the report to where the user wants it.
func (f *flags) write(out io.Writer, report *conformance.Report) error {
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

// verdict is ErrFailed when a check failed.
func verdict(report *conformance.Report) error {
	if report.Count(conformance.Fail) > 0 {
		return ErrFailed
	}
	return nil
}
