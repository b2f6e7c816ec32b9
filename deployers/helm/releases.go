// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// deployRelease deploys an item in Helm mode: it installs or upgrades the release if the inputs have changed, and
// corrects its objects otherwise.
func (r *run) deployRelease(ctx context.Context) error {
	if err := r.checkFormer(); err != nil {
		return err
	}
	r.Managed.TakeTriggers() // changes that are reported from now on start another run
	op, err := r.currentOperation(ctx)
	if errors.Is(err, deployerlib.ErrUnchanged) {
		return err
	}
	if err != nil {
		r.Managed.ReturnTriggers()
		return err
	}
	if op == nil {
		return r.finish(ctx, nil)
	}
	r.memory.operation = op
	if err := r.continueOperation(ctx, op); err != nil {
		r.Managed.ReturnTriggers()
		return err
	}
	if op.replaced == nil {
		r.memory.document = &documentOf{inputs: op.inputs, document: op.document}
	}
	return r.finish(ctx, op.document)
}

// currentOperation returns the operation that this call must continue. It returns nil if nothing must be done, because
// the inputs, the records and the objects have not changed since the last deployment.
func (r *run) currentOperation(ctx context.Context) (*operation, error) {
	req := r.newChartRenderer().request(r.deployer.manager.GetSecretClient())
	in, id, err := r.deployer.resolveInputs(ctx, req, r.Managed.Item.UID, r.config)
	if err != nil {
		return nil, err
	}
	if op, err := r.resumeOperation(ctx, in); op != nil || err != nil {
		return op, err
	}
	if unchanged, err := r.isDeployed(ctx, in); unchanged || err != nil {
		return nil, err
	}
	history := r.newHistory()
	storage := history.storage()
	revisions, err := history.readAll(ctx, storage)
	if err != nil {
		return nil, err
	}
	if r.hasSameInputs(in) && history.isCurrent(revisions) {
		if r.config.Extension.Drift.Mode == DriftWarn && !r.mustCorrect(in) {
			return nil, nil
		}
		op, err := r.repair(ctx, storage, in)
		if !errors.Is(err, release.ErrNotFound) {
			return op, err
		}
	}
	if deployerlib.StoredPhase(ctx).IsFinal() && r.release.isHelm() && r.release.FirstFailure != "" {
		return r.repairAfterFailure(ctx, storage, in)
	}
	history.reportForeign(revisions)
	return r.beginOperation(ctx, req, id, in, revisions)
}

// resumeOperation returns the operation that an earlier call has begun, or nil if there is none. If the inputs have
// changed, it ends the operation.
func (r *run) resumeOperation(ctx context.Context, in inputs) (*operation, error) {
	op := r.memory.operation
	if op == nil || op.inputs == in && !op.hasEnded() {
		return op, nil
	}
	if err := op.writeFailure(ctx, r.now(), "the configuration of the item has changed"); err != nil {
		return nil, err
	}
	r.endOperation(op)
	return nil, nil
}

// hasSameInputs reports whether the last operation has deployed the inputs.
func (r *run) hasSameInputs(in inputs) bool {
	return r.release.isHelm() && r.release.inputs == in && r.release.Status == release.StatusDeployed
}

// isDeployed reports whether the inputs are deployed, and watches show that neither the records nor the objects have
// changed since.
func (r *run) isDeployed(ctx context.Context, in inputs) (bool, error) {
	if !r.hasSameInputs(in) || !r.memory.records.isCurrent() || r.exportsDue(in) {
		return false, nil
	}
	return r.newDriftDetector().isUnchanged(ctx, r.EngineOptions)
}

// beginOperation returns a new operation, if the limits allow another one. Otherwise, the item waits.
func (r *run) beginOperation(ctx context.Context, req chart.Request, id chart.Identity, in inputs, revisions []release.Revision) (*operation, error) {
	if err := r.newHistory().checkAttempts(revisions); err != nil {
		return nil, err
	}
	if err := r.takeSlot(); err != nil {
		return nil, err
	}
	item := r.Managed.Item.UID
	op, err := r.newDeployment(ctx, req, id, in, revisions)
	if err != nil {
		r.deployer.slots.release(item)
		return nil, err
	}
	op.onEnd = func() { r.deployer.slots.release(item) }
	return op, nil
}

// repairAfterFailure returns the operation of a background run whose job has failed: it applies the objects of the deployed
// revision again if there is one. Only the next job repeats the operation that failed.
func (r *run) repairAfterFailure(ctx context.Context, storage *release.Storage, in inputs) (*operation, error) {
	if r.release.Status != release.StatusDeployed {
		return nil, deployerlib.ErrUnchanged
	}
	op, err := r.repair(ctx, storage, in)
	if errors.Is(err, release.ErrNotFound) {
		return nil, deployerlib.ErrUnchanged
	}
	if err == nil && (op.record.Status() != release.StatusDeployed || op.record.UID() != r.release.SecretUID) {
		return nil, deployerlib.ErrUnchanged // another client has changed the release
	}
	return op, err
}

// mustCorrect reports whether the objects must be applied although the inputs have not changed and the mode is DriftWarn.
func (r *run) mustCorrect(in inputs) bool {
	return r.Managed.IsResyncForced() || r.Managed.HasLostInventory() || r.exportsDue(in) || len(r.release.Former) > 0
}

// repair returns an operation that applies the objects of the current revision again.
func (r *run) repair(ctx context.Context, storage *release.Storage, in inputs) (*operation, error) {
	record, err := storage.Get(ctx, r.release.Revision)
	if err != nil {
		return nil, renderError(err)
	}
	op := r.newOperation(kindRepair, in, storage)
	op.record = record
	if op.desired, err = r.newChartRenderer().desiredOf(record); err != nil {
		return nil, err
	}
	if r.needsDocument() {
		op.document, err = record.Document()
	}
	return op, renderError(err)
}

// newDeployment returns the operation that installs or upgrades the release. If another deployer has deployed the same
// chart with the same values, it returns an operation that takes over the release without a new revision.
func (r *run) newDeployment(ctx context.Context, req chart.Request, id chart.Identity, in inputs, revisions []release.Revision) (*operation, error) {
	loaded, err := r.newChartRenderer().loadChart(ctx, req, id)
	if err != nil {
		return nil, err
	}
	storage, deployed := r.newHistory().storage(), lastDeployed(revisions)
	var former *release.Record
	if deployed != nil {
		if former, err = storage.Get(ctx, deployed.Number); err != nil {
			return nil, renderError(err)
		}
	}
	if r.release == nil && former != nil && deployed.Number == revisions[len(revisions)-1].Number && former.Matches(loaded, r.config.Values) {
		return r.takeOver(former, storage, in)
	}
	op := r.newOperation(kindInstall, in, storage)
	op.settings, op.former = r.config.Install, revisions
	status, description, number := release.StatusPendingInstall, "Initial install underway", 1
	if len(revisions) > 0 {
		number = revisions[len(revisions)-1].Number + 1
	}
	if wasDeployed(revisions) {
		op.kind, op.settings, status, description = kindUpgrade, r.config.Upgrade, release.StatusPendingUpgrade, "Preparing upgrade"
	}
	rendered, input, err := r.render(ctx, loaded, in, number, op.kind == kindUpgrade)
	if err != nil {
		return nil, err
	}
	op.record = release.NewRecord(input, rendered, r.config.Extension.Slim)
	op.record.Begin(number, status, r.operationIDs().next(), r.now(), description)
	if former != nil {
		op.record.SetFirstDeployed(former)
	}
	if err := op.record.Check(); err != nil {
		return nil, renderError(err)
	}
	op.crds, op.document = rendered.CRDs, rendered.Document
	op.desired, err = r.newChartRenderer().releaseObjects(rendered.Objects, r.config.Name, r.config.Namespace)
	r.reportIgnored(rendered.Ignored)
	return op, err
}

// wasDeployed reports whether the release was deployed before. Otherwise the next operation is an installation, even if
// there are failed revisions.
func wasDeployed(revisions []release.Revision) bool {
	for _, revision := range revisions {
		if revision.Status == release.StatusDeployed || revision.Status == release.StatusSuperseded {
			return true
		}
	}
	return false
}

// takeOver returns an operation that applies the objects of a release that another deployer has deployed.
func (r *run) takeOver(record *release.Record, storage *release.Storage, in inputs) (*operation, error) {
	op := r.newOperation(kindRepair, in, storage)
	op.record = record
	var err error
	if op.desired, err = r.newChartRenderer().desiredOf(record); err != nil {
		return nil, err
	}
	if op.document, err = record.Document(); err != nil {
		return nil, renderError(err)
	}
	last := r.lastRelease()
	last.Revision, last.Status, last.SecretUID = record.Revision(), release.StatusDeployed, record.UID()
	last.Chart, last.ChartVersion, last.inputs = record.ChartName(), record.ChartVersion(), in
	r.Managed.RecordEvent(nil, corev1.EventTypeNormal, "ReleaseTakenOver", fmt.Sprintf("revision %d of release %s contains the same chart and values, and is taken over", record.Revision(), r.config.Name))
	return op, r.setLastRelease(last)
}

// Forget stops the watch of the records, and ends the operation that is under way. Package managed calls it when it
// forgets the item.
func (m *memory) Forget() {
	m.records.stop()
	if op := m.operation; op != nil {
		op.end(time.Time{}, resultInterrupted)
	}
}
