// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewInstallation returns an Installation that has only a namespace and a name.
func (e *Env) NewInstallation(name string) *lsv1alpha1.Installation {
	in := &lsv1alpha1.Installation{}
	in.Namespace, in.Name = e.Namespace, name
	return in
}

// StoreJobs stores the last job of each Installation. Call it before a change that requests a job. The expectations of
// this package then wait for a later job.
func (e *Env) StoreJobs(ctx context.Context) error {
	list := &lsv1alpha1.InstallationList{}
	if err := e.List(ctx, list, client.InNamespace(e.Namespace)); err != nil {
		return fmt.Errorf("list Installations: %w", err)
	}
	for i := range list.Items {
		e.jobs[list.Items[i].Name] = list.Items[i].Status.JobID
	}
	return nil
}

// InstallationSucceeds expects that a new job of an Installation succeeds. If Landscaper failed the job because one of
// its own writes conflicted, InstallationSucceeds requests another job, as an operator would.
func InstallationSucceeds(name string) Func {
	return func(ctx context.Context, e *Env) error {
		in, err := e.getFinished(ctx, name)
		if err != nil {
			return err
		}
		if s := in.Status; s.InstallationPhase == lsv1alpha1.InstallationPhases.Failed && e.failedWithoutItems(ctx, s.JobID) {
			e.jobs[name] = s.JobID
			return errors.Join(fmt.Errorf("the job failed, but no item did%s", formatError(s.LastError)),
				e.SetAnnotation(ctx, in, lsv1alpha1.OperationAnnotation, string(lsv1alpha1.ReconcileOperation)))
		}
		return requirePhase(in, lsv1alpha1.InstallationPhases.Succeeded)
	}
}

// InstallationFails expects that a new job of an Installation ends in a phase such as Failed or DeleteFailed.
func InstallationFails(name string, want lsv1alpha1.InstallationPhase) Func {
	return func(ctx context.Context, e *Env) error {
		in, err := e.getFinished(ctx, name)
		if err != nil {
			return err
		}
		return requirePhase(in, want)
	}
}

// getFinished reads an Installation. It returns an error until a new job has ended.
func (e *Env) getFinished(ctx context.Context, name string) (*lsv1alpha1.Installation, error) {
	in := e.NewInstallation(name)
	if err := e.Get(ctx, e.Key(name), in); err != nil {
		return nil, err
	}
	switch s := in.Status; {
	case s.JobID == e.jobs[name]:
		return nil, errors.New("no new job has started")
	case s.JobID != s.JobIDFinished || !s.InstallationPhase.IsFinal():
		return nil, fmt.Errorf("the phase is %q%s", s.InstallationPhase, formatError(s.LastError))
	}
	return in, nil
}

// requirePhase returns a final error if a finished Installation has another phase.
func requirePhase(in *lsv1alpha1.Installation, want lsv1alpha1.InstallationPhase) error {
	s := in.Status
	if s.InstallationPhase == want {
		return nil
	}
	return NewFinalError(fmt.Errorf("the phase is %q, not %q%s", s.InstallationPhase, want, formatError(s.LastError)))
}

// failedWithoutItems reports whether there are items and none of them failed in the given job.
func (e *Env) failedWithoutItems(ctx context.Context, job string) bool {
	items, err := e.ListItems(ctx)
	return err == nil && len(items) > 0 && !slices.ContainsFunc(items, func(di lsv1alpha1.DeployItem) bool {
		return di.Status.JobID == job && di.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded
	})
}

// DeleteInstallation returns an action that deletes an Installation. It does not wait until the Installation is gone.
func DeleteInstallation(name string) Func {
	return func(ctx context.Context, e *Env) error {
		if err := e.StoreJobs(ctx); err != nil {
			return err
		}
		return e.Delete(ctx, e.NewInstallation(name))
	}
}

// InstallationIsGone expects that an Installation no longer exists.
func InstallationIsGone(name string) Func {
	return func(ctx context.Context, e *Env) error {
		in := e.NewInstallation(name)
		if err := e.Get(ctx, e.Key(name), in); err != nil {
			return client.IgnoreNotFound(err)
		}
		s := in.Status
		err := fmt.Errorf("the Installation still exists, in phase %q%s", s.InstallationPhase, formatError(s.LastError))
		if s.InstallationPhase == lsv1alpha1.InstallationPhases.DeleteFailed && s.JobID == s.JobIDFinished && s.JobID != e.jobs[name] {
			return NewFinalError(err)
		}
		return err
	}
}
