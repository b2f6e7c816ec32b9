// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
)

// newSubject returns the conformance.Subject that the flags describe. It reads all files that the flags name.
func (f *flags) newSubject(stdin io.Reader) (conformance.Subject, error) {
	s := conformance.Subject{Bounds: f.bounds, Options: conformance.Options{Kubeconfig: f.kubeconfig, Only: f.only, Parallel: f.parallel}}
	for _, revision := range f.revisions {
		s.Revisions = append(s.Revisions, contract.Revision(revision))
	}
	if f.command == "" || f.item == "" {
		return s, errors.New("--command and --item are required")
	}
	var err error
	if s.Exceptions, err = f.parseExceptions(); err != nil {
		return s, err
	}
	if err := f.addItems(&s, stdin); err != nil {
		return s, err
	}
	s.Name = cmp.Or(f.name, string(s.Type))
	return s, f.addCommands(&s)
}

// addItems reads the files of the deploy items.
func (f *flags) addItems(s *conformance.Subject, stdin io.Reader) error {
	valid, err := readItem("--item", f.item, "", stdin)
	if err != nil {
		return err
	}
	s.Type = valid.Spec.Type
	s.Valid = newConfigFunc(valid)
	if f.invalid != "" {
		di, err := readItem("--invalid-item", f.invalid, s.Type, stdin)
		if err != nil {
			return err
		}
		s.Invalid = newInvalidConfigFunc(di)
	}
	if f.slow != "" {
		di, err := readItem("--slow-item", f.slow, s.Type, stdin)
		if err != nil {
			return err
		}
		s.Slow = newConfigFunc(di)
	}
	if f.target != "" {
		return f.addTarget(s, stdin)
	}
	if valid.Spec.Target != nil {
		return errors.New("--item: spec.target: the item names a Target; provide that Target with --target")
	}
	if f.otherLabels != nil {
		return errors.New("--other-target-labels: needs --target")
	}
	return nil
}

// addCommands parses the command lines and sets the functions of the subject that run these commands.
func (f *flags) addCommands(s *conformance.Subject) error {
	start, err := parseCommandLine(f.command)
	if err != nil {
		return fmt.Errorf("--command: %w", err)
	}
	if _, err := exec.LookPath(start[0]); err != nil {
		return fmt.Errorf("--command: %w", err)
	}
	kubeconfig := "" // all commands can share this variable, because the revisions are checked one after the other
	s.Command = func(path string) *exec.Cmd {
		kubeconfig = path
		words := start.replaceIn(placeholders{kubeconfigHere: path})
		command := exec.Command(words[0], words[1:]...) //nolint:gosec // the user chooses the command
		command.Env = newEnvironment(path)
		return command
	}
	if f.deployedCommand != "" {
		look, err := parseCommandLine(f.deployedCommand)
		if err != nil {
			return fmt.Errorf("--deployed-command: %w", err)
		}
		s.Deployed = func(ctx context.Context, _ client.Client, item types.NamespacedName) (bool, error) {
			return look.runForItem(ctx, item, kubeconfig)
		}
	}
	return f.addFinish(s, &kubeconfig)
}

// addFinish sets Subject.Finish, the function that lets the run of a slow item succeed, according to --finish-item or
// --finish-command.
func (f *flags) addFinish(s *conformance.Subject, kubeconfig *string) error {
	switch {
	case f.finish != "" && f.finishCommand != "":
		return errors.New("--finish-item, --finish-command: set only one of them")
	case (f.finish != "" || f.finishCommand != "") && f.slow == "":
		return errors.New("--finish-item, --finish-command: need --slow-item")
	case f.finish != "":
		di, err := readItem("--finish-item", f.finish, s.Type, nil)
		if err != nil {
			return err
		}
		s.Finish = configure(newConfigFunc(di))
	case f.finishCommand != "":
		finish, err := parseCommandLine(f.finishCommand)
		if err != nil {
			return fmt.Errorf("--finish-command: %w", err)
		}
		s.Finish = func(ctx context.Context, _ client.Client, item types.NamespacedName) error {
			ok, err := finish.runForItem(ctx, item, *kubeconfig)
			if err == nil && !ok {
				err = fmt.Errorf("%s: exit status 1", finish[0])
			}
			return err
		}
	}
	return nil
}

// runForItem runs the command line for an item. It returns true if the exit code is 0, false if it is 1, and an error
// otherwise.
func (w commandLine) runForItem(ctx context.Context, item types.NamespacedName, kubeconfig string) (bool, error) {
	values := newPlaceholders(item)
	values[kubeconfigHere] = kubeconfig
	words := w.replaceIn(values)
	command := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the user chooses the command
	command.Env = newEnvironment(kubeconfig)
	output, err := command.CombinedOutput()
	if fault, ok := errors.AsType[*exec.ExitError](err); ok && fault.ExitCode() == 1 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w: %s", w[0], err, contract.OneLine(string(output), 200))
	}
	return true, nil
}

// configure returns a function that replaces the configuration of an item in the cluster with the result of `config`.
func configure(config func(types.NamespacedName) any) func(context.Context, client.Client, types.NamespacedName) error {
	return func(ctx context.Context, c client.Client, key types.NamespacedName) error {
		di := &lsv1alpha1.DeployItem{}
		if err := c.Get(ctx, key, di); err != nil {
			return err
		}
		old := di.DeepCopy()
		di.Spec.Configuration.Raw = config(key).([]byte) //nolint:forcetypeassert // configOf makes nothing else
		return c.Patch(ctx, di, client.MergeFrom(old))
	}
}
