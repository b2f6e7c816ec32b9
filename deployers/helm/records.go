// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

// releaseHistory reads and watches the records of the release of an item.
type releaseHistory struct {
	*managed.Run

	manager *managed.ResourceManager
	release FormerRelease  // the release of the configuration
	last    *ReleaseStatus // the last deployment, or nil
	ids     operationIDs
	watch   *recordWatch
}

// newHistory returns the history of the release in the configuration.
func (r *run) newHistory() *releaseHistory {
	return &releaseHistory{
		Run: r.Managed, manager: r.deployer.manager, release: FormerRelease{Name: r.config.Name, Namespace: r.config.Namespace}, last: r.release,
		ids: r.operationIDs(), watch: &r.memory.records,
	}
}

// storage returns the Storage for the release of the configuration.
func (h *releaseHistory) storage() *release.Storage {
	return release.NewStorage(h.Cluster, h.release.Namespace, h.release.Name)
}

// isCurrent reports whether the last revision is the one that the item has deployed.
func (h *releaseHistory) isCurrent(revisions []release.Revision) bool {
	if len(revisions) == 0 {
		return false
	}
	last := revisions[len(revisions)-1]
	return last.Number == h.last.Revision && last.UID == h.last.SecretUID && last.Status == release.StatusDeployed
}

// reportForeign writes an event if another client has changed the records of the release.
func (h *releaseHistory) reportForeign(revisions []release.Revision) {
	if !h.last.isHelm() || h.last.Status != release.StatusDeployed || h.isCurrent(revisions) {
		return
	}
	if h.last.Name != h.release.Name || h.last.Namespace != h.release.Namespace {
		return
	}
	text := "its records were deleted"
	if len(revisions) > 0 {
		last := revisions[len(revisions)-1]
		text = fmt.Sprintf("revision %d has the status %s", last.Number, last.Status)
	}
	h.RecordEvent(nil, corev1.EventTypeWarning, "ReleaseChanged", fmt.Sprintf("another client has changed release %s after revision %d: %s", h.release.Name, h.last.Revision, text))
}

// readAll returns the revisions of the release and watches them from now on. The last one is not pending: if its
// operation was lost, readAll marks it as failed; if another client works on it, the item waits.
func (h *releaseHistory) readAll(ctx context.Context, storage *release.Storage) ([]release.Revision, error) {
	h.startWatch()
	revisions, err := storage.List(ctx)
	if err != nil {
		return nil, err
	}
	if h.last.isHelm() && h.isCurrent(revisions) {
		h.watch.setBaseline(revisions)
	} else {
		h.watch.stop() // the next call must not take these records for unchanged
	}
	wrote, err := h.settlePending(ctx, storage, revisions)
	if err != nil || !wrote {
		return revisions, err
	}
	return storage.List(ctx)
}

// foreignPatience is how long a pending record of another client is respected.
const foreignPatience = time.Hour

// settlePending handles a last revision that is pending. If an earlier operation of this item was lost, it marks the
// record as failed. If another client wrote the record, the item waits, and the record is marked as failed only when it
// is old. It reports whether it has written a record.
func (h *releaseHistory) settlePending(ctx context.Context, storage *release.Storage, revisions []release.Revision) (wrote bool, err error) {
	if len(revisions) == 0 {
		return false, nil
	}
	last := revisions[len(revisions)-1]
	if !last.Status.IsPending() {
		return false, nil
	}
	text := "the deployer was stopped during the operation"
	if !h.ids.isOwn(last) {
		if age := h.manager.GetRuntime().Clock.Now().Sub(last.Modified); age < foreignPatience {
			return false, h.NewWaitError("release", 0, fmt.Sprintf("another client has an operation under way: revision %d of release %s has the status %s", last.Number, h.release.Name, last.Status),
				min(foreignPatience-age, h.WatchUntilChanged([]observe.WatchRequest{h.watchRequest(revisions)})))
		}
		text = "the operation of another client did not end"
		h.RecordEvent(nil, corev1.EventTypeWarning, "ReleaseUnlocked", fmt.Sprintf("revision %d of release %s has the status %s for more than %s, and is marked as failed", last.Number, h.release.Name, last.Status, foreignPatience))
	}
	record, err := storage.Get(ctx, last.Number)
	if errors.Is(err, release.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	record.SetStatus(release.StatusFailed, text)
	if err := storage.Update(ctx, record, h.manager.GetRuntime().Clock.Now()); err != nil && !errors.Is(err, release.ErrConflict) {
		return false, err
	}
	return true, nil
}

// secretResource is the resource of release records.
var secretResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// recordWatch watches the records of a release.
type recordWatch struct {
	subscription *observe.Subscription // nil if the records are not watched
	release      FormerRelease
}

// start watches the records of a release, unless they are watched already. A change by another client calls the function.
func (w *recordWatch) start(of FormerRelease, request observe.WatchRequest, changed func()) {
	if w.subscription != nil && w.release == of && !w.subscription.HasEnded() {
		return
	}
	w.stop()
	w.subscription, w.release = request.Subscribe(changed), of
}

// stop ends the watch.
func (w *recordWatch) stop() {
	if w.subscription != nil {
		w.subscription.Stop()
		w.subscription = nil
	}
}

// setBaseline sets the revisions with which the watch compares later states.
func (w *recordWatch) setBaseline(revisions []release.Revision) {
	if w.subscription != nil {
		w.subscription.SetBaseline(release.Baseline(revisions))
	}
}

// isCurrent reports whether the records are known to be unchanged.
func (w *recordWatch) isCurrent() bool { return w.subscription != nil && w.subscription.IsCurrent() }

// startWatch watches the records of the release. A change by another client starts a run of the item.
func (h *releaseHistory) startWatch() {
	uid, manager := h.Item.UID, h.manager
	h.watch.start(h.release, h.watchRequest(nil), func() { manager.Trigger(uid, time.Time{}) })
}

// watchRequest selects the records of the release for a watch.
func (h *releaseHistory) watchRequest(revisions []release.Revision) observe.WatchRequest {
	return h.Cluster.Watcher().ForLabels(secretResource, h.storage().Labels(), release.Baseline(revisions)).InNamespace(h.release.Namespace)
}

// watchOwn watches the records after this deployer has written them.
func (h *releaseHistory) watchOwn(ctx context.Context, storage *release.Storage) error {
	h.startWatch()
	revisions, err := storage.List(ctx)
	if err != nil {
		h.watch.stop()
		return err
	}
	if h.isCurrent(revisions) {
		h.watch.setBaseline(revisions)
		return nil
	}
	h.watch.stop() // another client has changed the records in the meantime
	h.manager.Trigger(h.Item.UID, time.Time{})
	return nil
}

// maxAttempts is the maximum number of operations of a job that end without a result, because the process ended.
const maxAttempts = 3

// checkAttempts returns an error if the process has ended during each operation of the job. An operation may be the cause,
// for example because of its size, so that further operations would end the process as well.
func (h *releaseHistory) checkAttempts(revisions []release.Revision) error {
	attempts, ids := 0, h.ids
	for _, revision := range revisions {
		if revision.Status == release.StatusFailed && ids.isOfJob(revision) {
			attempts++
		}
	}
	if attempts < maxAttempts {
		return nil
	}
	return lserrors.NewError("Helm", "TooManyOperations", fmt.Sprintf("%d operations of this job have failed or were interrupted, the next job tries again", attempts), lsv1alpha1.ErrorConfigurationProblem)
}
