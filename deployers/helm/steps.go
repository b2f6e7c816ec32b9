// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// installDefinitions creates or replaces the CustomResourceDefinitions of the chart.
func installDefinitions(ctx context.Context, r *run, op *operation) error {
	return installCRDs(ctx, r.Run, op.crds, r.config.Extension.CRDs.policyOf(op.kind == kindUpgrade))
}

// createNamespace checks that the namespace of the release exists, or creates it.
func createNamespace(ctx context.Context, r *run, _ *operation) error {
	return ensureNamespace(ctx, r.Managed.Cluster, r.config)
}

// The metadata with which Helm marks the objects of a release.
const (
	labelManagedBy             = "app.kubernetes.io/managed-by"
	annotationReleaseName      = "meta.helm.sh/release-name"
	annotationReleaseNamespace = "meta.helm.sh/release-namespace"
	managedByHelm              = "Helm"
	unknownOwner               = "no release"
)

// createRecord stores the record of the operation. From now on, other clients see the operation.
func createRecord(ctx context.Context, r *run, op *operation) error {
	last := r.lastRelease()
	last.Revision, last.Status, last.SecretUID, last.inputs = op.record.Revision(), op.record.Status(), "", inputs{}
	if err := r.setLastRelease(last); err != nil {
		return err
	}
	r.memory.records.stop() // the records change now
	if err := op.create(ctx, r.now()); err != nil {
		return err
	}
	r.watchEnd(op)
	return nil
}

// errRecordTaken is the error of an operation whose revision another client has created in the meantime. The next call
// reads the records again, and starts another operation if necessary.
var errRecordTaken = errors.New("another client has created the next revision of the release at the same time")

// applyObjects applies the objects.
func applyObjects(ctx context.Context, r *run, op *operation) error {
	drift := r.newDriftDetector()
	desired, err := drift.tolerate(ctx, op.desired)
	if err != nil {
		return err
	}
	r.EngineOptions.CanCorrect = drift.canCorrect()
	return r.Apply(ctx, slices.Concat(desired, r.retainFormer(desired)))
}

// awaitObjects waits until the objects are ready, if the configuration requires it.
func awaitObjects(ctx context.Context, r *run, op *operation) error {
	if !op.settings.Wait && !op.settings.Atomic && !r.config.Extension.Test.Enable {
		return nil
	}
	if op.bound == 0 {
		op.bound = r.remaining(op).Round(time.Second)
	}
	return r.Managed.CheckAllReady(ctx, op.bound)
}

// remaining returns how long a step of an operation may wait, or 0 if there is no limit. An atomic operation without a
// timeout of its own leaves a third of the job's time for its reversal.
func (r *run) remaining(op *operation) time.Duration {
	const least = time.Second
	if op.settings.Timeout > 0 {
		return max(op.began.Add(op.settings.Timeout).Sub(r.now()), least)
	}
	deadline := r.deadline()
	if !op.settings.Atomic || deadline.IsZero() {
		return 0
	}
	return max(deadline.Sub(op.began)*2/3, least)
}

// succeed marks the revision as deployed, and the revisions that were deployed before as superseded. It deletes the oldest
// revisions.
func succeed(ctx context.Context, r *run, op *operation) error {
	if op.record.Status() != release.StatusDeployed {
		texts := map[operationKind]string{kindInstall: "Install complete", kindUpgrade: "Upgrade complete", kindRollback: op.record.Description()}
		if err := op.markDeployed(ctx, r.now(), texts[op.kind]); err != nil {
			return err
		}
	}
	for _, revision := range op.former {
		if revision.Status == release.StatusDeployed {
			if err := supersede(ctx, op.storage, revision, r.now()); err != nil {
				return err
			}
		}
	}
	if err := trimHistory(ctx, op.storage, op.former, nil); err != nil {
		return err
	}
	last := r.lastRelease()
	last.Revision, last.Status, last.SecretUID, last.FirstFailure = op.record.Revision(), release.StatusDeployed, op.record.UID(), ""
	last.Chart, last.ChartVersion, last.inputs = op.record.ChartName(), op.record.ChartVersion(), op.inputs
	if op.kind != kindRollback {
		last.Tests = r.testResults(op)
	}
	if op.cause != nil { // a rollback restores other inputs than those of the configuration
		last.inputs, last.FirstFailure = inputs{}, plainText(op.cause)
	}
	if err := r.setLastRelease(last); err != nil {
		return err
	}
	return r.newHistory().watchOwn(ctx, op.storage)
}

// errInterrupted is the error of an operation that was ended from outside.
var errInterrupted = errors.New("the operation was interrupted")

// supersede marks a revision as superseded.
func supersede(ctx context.Context, storage *release.Storage, revision release.Revision, now time.Time) error {
	for range maxConflicts {
		record, err := storage.Get(ctx, revision.Number)
		if errors.Is(err, release.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		record.SetStatus(release.StatusSuperseded, record.Description())
		if err = storage.Update(ctx, record, now); !errors.Is(err, release.ErrConflict) {
			return err
		}
	}
	return nil // another client changes the record all the time
}

// maxConflicts is how often a write of a record is attempted that does not belong to the operation.
const maxConflicts = 3

// maxHistory is the maximum number of revisions of a release.
const maxHistory = 10

// trimHistory deletes the oldest revisions, so that at most maxHistory remain, including the one that was just created.
// The revision keep, which may be nil, remains in any case.
func trimHistory(ctx context.Context, storage *release.Storage, former []release.Revision, keep *release.Revision) error {
	for _, revision := range former[:max(len(former)+1-maxHistory, 0)] {
		if keep != nil && revision.Number == keep.Number {
			continue
		}
		if err := storage.Delete(ctx, revision); err != nil {
			return err
		}
	}
	return nil
}

// markUninstalling marks the last revision as being uninstalled.
func markUninstalling(ctx context.Context, r *run, op *operation) error {
	if op.record == nil || op.record.Status() == release.StatusUninstalling {
		return nil
	}
	r.memory.records.stop()
	return op.markUninstalling(ctx, r.now())
}

// removeObjects deletes the objects of the release, and waits until they are gone. Objects that op.desired contains remain.
func removeObjects(ctx context.Context, r *run, op *operation) error {
	return r.Apply(ctx, op.desired)
}

// purgeRecords deletes all records of the release.
func purgeRecords(ctx context.Context, r *run, op *operation) error {
	if err := deleteRecords(ctx, op.storage); err != nil {
		return err
	}
	if op.cause == nil {
		return nil
	}
	last := r.lastRelease()
	last.Revision, last.Status, last.SecretUID, last.inputs = 0, "", "", inputs{}
	last.FirstFailure = plainText(op.cause)
	return r.setLastRelease(last)
}

// deleteRecords deletes all records of a release. It deletes the last one first, so that an interrupted deletion leaves
// no record that seems to be deployed.
func deleteRecords(ctx context.Context, storage *release.Storage) error {
	revisions, err := storage.List(ctx)
	if err != nil {
		return err
	}
	for _, revision := range slices.Backward(revisions) {
		if err := storage.Delete(ctx, revision); err != nil {
			return err
		}
	}
	return nil
}
