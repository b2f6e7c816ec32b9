// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// history contains every version of every item of a spec that the API server stored.
type history struct {
	mu       sync.Mutex
	versions map[string][]*lsv1alpha1.DeployItem
}

// record watches the namespace of a spec. At the end of the spec, it checks all versions against the rules.
func (w *env) record() *history {
	GinkgoHelper()
	h := &history{versions: map[string][]*lsv1alpha1.DeployItem{}}
	events, err := w.watcher.Watch(context.WithoutCancel(w.ctx), &lsv1alpha1.DeployItemList{}, client.InNamespace(w.ns))
	Expect(err).NotTo(HaveOccurred())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for event := range events.ResultChan() {
			if di, ok := event.Object.(*lsv1alpha1.DeployItem); ok {
				h.add(di)
			}
		}
	}()
	DeferCleanup(func(ctx SpecContext) {
		list := &lsv1alpha1.DeployItemList{}
		Expect(w.client.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
		w.ctx = ctx // the context of the spec has already ended
		for i := range list.Items {
			w.waitForRecorder(list.Items[i].Name)
		}
		events.Stop()
		<-drained
		Expect(h.findViolations(w.revision)).To(BeEmpty(), "a version that was stored breaks a rule of the contract")
		Expect(w.fake.OverlappingCalls()).To(BeEmpty(), "two calls ran at once for one item")
	})
	return h
}

func (h *history) add(di *lsv1alpha1.DeployItem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.versions[di.Name] = append(h.versions[di.Name], di)
}

// getVersions returns all versions of an item so far.
func (h *history) getVersions(name string) []*lsv1alpha1.DeployItem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions[name])
}

// waitForRecorder waits until the recorder has received the newest version of an item.
func (w *env) waitForRecorder(name string) {
	GinkgoHelper()
	Eventually(func() bool {
		newest, versions := w.get(name).ResourceVersion, w.history.getVersions(name)
		return len(versions) > 0 && versions[len(versions)-1].ResourceVersion == newest
	}).WithContext(w.ctx).Should(BeTrue(), "the recorder lags behind")
}

// forget removes all recorded versions of an item except the newest one.
func (w *env) forget(name string) {
	GinkgoHelper()
	w.waitForRecorder(name)
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	versions := w.history.versions[name]
	w.history.versions[name] = versions[len(versions)-1:]
}

// listVersions returns all stored versions of an item since the last call of the method `forget`.
func (w *env) listVersions(name string) []*lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.waitForRecorder(name)
	return w.history.getVersions(name)
}

// listPhases returns the phases that an item has had so far, in order.
func (w *env) listPhases(name string) []lsv1alpha1.DeployItemPhase {
	GinkgoHelper()
	w.waitForRecorder(name)
	return w.history.getPhases(name)
}

// getPhases returns the phases of an item in the versions that the recorder has received so far, in order.
func (h *history) getPhases(name string) []lsv1alpha1.DeployItemPhase {
	var seen []lsv1alpha1.DeployItemPhase
	for _, di := range h.getVersions(name) {
		if p := di.Status.Phase; p != "" && (len(seen) == 0 || seen[len(seen)-1] != p) {
			seen = append(seen, p)
		}
	}
	return seen
}

// findViolations returns all violations of the rules in the versions of all items.
func (h *history) findViolations(r contract.Revision) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var faults []string
	for name, versions := range h.versions {
		previous := versions[0]
		for _, di := range versions[1:] {
			if di.UID != previous.UID {
				previous = di
				continue
			}
			for _, fault := range checkVersion(r, previous, di) {
				faults = append(faults, fmt.Sprintf("%s@%s: %s\n%s", name, di.ResourceVersion, fault, formatItem(di)))
			}
			previous = di
		}
	}
	return faults
}

// checkVersion returns the rules that the version di violates, where previous is the version before di.
func checkVersion(r contract.Revision, previous, di *lsv1alpha1.DeployItem) []string {
	var faults []string
	rule := func(ok bool, text string) {
		if !ok {
			faults = append(faults, text)
		}
	}
	status, before := &di.Status, &previous.Status
	failed := status.Phase == phases.Failed || status.Phase == phases.DeleteFailed
	began := (status.Phase == phases.Init || status.Phase == phases.InitDelete) && contract.IsFinal(before.Phase)
	rule(!failed || status.LastError != nil || before.LastError != nil || before.Phase == status.Phase, "failed without lastError")
	rule(!began || !status.LastReconcileTime.IsZero() && status.Deployer.Name != "", "a run began without lastReconcileTime and deployer")
	rule(status.ObservedGeneration <= di.Generation, "observedGeneration is ahead")
	rule(status.ObservedGeneration >= before.ObservedGeneration, "observedGeneration went back")
	rule(!strings.Contains(getDeployerFields(di), `"f:spec"`), "a deployer wrote the spec")
	if !world.RevisionOf(r).Jobs {
		allowed := []lsv1alpha1.DeployItemPhase{"", phases.Init, phases.Progressing, phases.Deleting, phases.Succeeded, phases.Failed}
		rule(status.Phase == before.Phase || slices.Contains(allowed, status.Phase), "a phase that an old Landscaper does not know")
		return faults
	}
	ends := contract.IsFinal(status.Phase) && status.Phase != before.Phase
	ended := status.JobIDFinished != before.JobIDFinished
	rule(status.JobID == "" || status.JobID != status.JobIDFinished || contract.IsFinal(status.Phase), "a finished job with a phase that is not final")
	rule(!ends || status.JobID == status.JobIDFinished, "a final phase without jobIDFinished")
	rule(!ended || status.JobIDFinished == status.JobID, "jobIDFinished is not the job's")
	rule(status.JobID == before.JobID || before.JobID == before.JobIDFinished, "the job ID of an unfinished job changed")
	rule(before.JobIDFinished == "" || status.JobIDFinished != "", "jobIDFinished vanished")
	return faults
}

// getDeployerFields returns the fields of an item that managers other than Landscaper own.
func getDeployerFields(di *lsv1alpha1.DeployItem) string {
	var fields strings.Builder
	for _, entry := range di.ManagedFields {
		if entry.Manager != landscaperManager && entry.FieldsV1 != nil {
			fields.WriteString(entry.FieldsV1.GetRawString())
		}
	}
	return fields.String()
}
