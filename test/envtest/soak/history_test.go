// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// history watches the items, and checks each version against the rules that hold at every moment. If the watch ends,
// the history starts another watch. It misses only versions that are written while the API server restarts.
type history struct {
	client client.WithWatch
	ns     string

	mu sync.Mutex
	// items contains the last version of each item. The keys are the names of the items. An item without an entry
	// does not exist.
	items    map[string]*lsv1alpha1.DeployItem
	jobs     map[string]string             // for each job ID, the name of its item
	finished map[types.UID]map[string]bool // for each item, the IDs of the jobs that have ended
	faults   []string
	versions int
	gaps     int
}

func newHistory(c client.WithWatch, ns string) *history {
	return &history{
		client: c, ns: ns, items: map[string]*lsv1alpha1.DeployItem{}, jobs: map[string]string{}, finished: map[types.UID]map[string]bool{},
	}
}

// recordJob records a job. Call it before the job is written to the item.
func (h *history) recordJob(item, job string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs[job] = item
}

// latest returns the last received version of an item, or nil if the item does not exist.
func (h *history) latest(item string) *lsv1alpha1.DeployItem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.items[item]
}

// run watches until ctx ends.
func (h *history) run(ctx context.Context) {
	version := ""
	for ctx.Err() == nil {
		if version == "" {
			version = h.list(ctx)
		}
		if version != "" {
			version = h.watch(ctx, version)
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// list lists all items. It returns the resource version with which a watch can start, or "" if the list failed.
func (h *history) list(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list := &lsv1alpha1.DeployItemList{}
	if err := h.client.List(ctx, list, client.InNamespace(h.ns)); err != nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gaps++
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
		h.add(&list.Items[i], true)
	}
	for name := range h.items {
		if !there[name] {
			delete(h.items, name)
		}
	}
	return list.ResourceVersion
}

// watch watches the items from a resource version on. It returns the last received resource version, or "" if the API
// server reports that the version has expired.
func (h *history) watch(ctx context.Context, version string) string {
	options := &client.ListOptions{Namespace: h.ns, Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}}
	w, err := h.client.Watch(ctx, &lsv1alpha1.DeployItemList{}, options)
	if err != nil {
		if isExpired(err) {
			return ""
		}
		return version
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		di, ok := e.Object.(*lsv1alpha1.DeployItem)
		if !ok {
			return ""
		}
		version = di.ResourceVersion
		h.event(e.Type, di)
	}
	return version
}

func (h *history) event(t watch.EventType, di *lsv1alpha1.DeployItem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch t {
	case watch.Deleted:
		delete(h.items, di.Name)
	case watch.Added, watch.Modified:
		h.add(di, false)
	case watch.Bookmark, watch.Error:
	}
}

// add checks a version of an item. If `gap` is true, versions between the previous version and this one may be missing.
// The caller must hold the lock.
func (h *history) add(di *lsv1alpha1.DeployItem, gap bool) {
	old := h.items[di.Name]
	h.items[di.Name] = di
	if old != nil && old.UID == di.UID && old.ResourceVersion == di.ResourceVersion {
		return
	}
	h.versions++
	if old == nil || old.UID != di.UID {
		old = &lsv1alpha1.DeployItem{}
	}
	faults := slices.Concat(h.checkJob(old, di), checkVersion(di))
	if !gap {
		faults = append(faults, checkStep(old, di)...)
	}
	for _, fault := range faults {
		h.faults = append(h.faults, fmt.Sprintf("%s: %s: %s, before that %s", di.Name, fault, formatItem(di), formatItem(old)))
	}
}

// checkJob checks the rules about the job that ended last.
func (h *history) checkJob(old, di *lsv1alpha1.DeployItem) (faults []string) {
	job := di.Status.JobIDFinished
	if job == "" || job == old.Status.JobIDFinished {
		if old.Status.JobIDFinished != "" && job == "" {
			faults = append(faults, "jobIDFinished was taken back")
		}
		return faults
	}
	done := h.finished[di.UID]
	if done == nil {
		done = map[string]bool{}
		h.finished[di.UID] = done
	}
	if done[job] {
		faults = append(faults, "a job ended again")
	}
	done[job] = true
	if h.jobs[job] != di.Name {
		faults = append(faults, "a job ended that was not handed out to the item")
	}
	return faults
}

// isFinished reports whether the current job has ended.
func isFinished(s lsv1alpha1.DeployItemStatus) bool {
	return s.JobID != "" && s.JobID == s.JobIDFinished
}

// checkVersion checks the rules about a single version.
func checkVersion(di *lsv1alpha1.DeployItem) (faults []string) {
	if isFinished(di.Status) && !contract.IsFinal(di.Status.Phase) {
		faults = append(faults, "is finished without a final phase")
	}
	if di.DeletionTimestamp == nil && !contract.HasLandscaperFinalizer(di) {
		faults = append(faults, "the finalizer is lost")
	}
	if di.Status.ObservedGeneration > di.Generation {
		faults = append(faults, "observedGeneration is ahead")
	}
	return faults
}

// checkStep checks the rules about the change from one version to the next.
func checkStep(old, di *lsv1alpha1.DeployItem) (faults []string) {
	was, is, over := old.Status, di.Status, isFinished(di.Status)
	if is.JobIDFinished != was.JobIDFinished && is.JobIDFinished != was.JobID {
		faults = append(faults, "another job than the present one ended")
	}
	if contract.IsFinal(is.Phase) && is.Phase != was.Phase && was.JobID == is.JobID && !over {
		faults = append(faults, "a final phase came without jobIDFinished")
	}
	if is.ObservedGeneration < was.ObservedGeneration {
		faults = append(faults, "observedGeneration went back")
	}
	stays := over && was.JobID == is.JobID && was.JobIDFinished == is.JobIDFinished
	if stays && was.Phase != is.Phase && !isInterrupted(di) {
		faults = append(faults, "the phase changed after the job ended")
	}
	if was.LastReconcileTime != nil && (is.LastReconcileTime == nil || is.LastReconcileTime.Before(was.LastReconcileTime)) {
		faults = append(faults, "lastReconcileTime went back")
	}
	return faults
}

// isInterrupted reports whether the last error shows that Landscaper interrupted the job. The deployer may have ended
// the job before the interrupt.
func isInterrupted(di *lsv1alpha1.DeployItem) bool {
	return di.Status.LastError != nil && di.Status.LastError.Operation == "InterruptOperation"
}
