// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

var phases = lsv1alpha1.DeployItemPhases

// itemOption changes an item before the item is created or updated.
type itemOption func(*lsv1alpha1.DeployItem)

// create creates an item as an Execution does, without requesting a run.
func (w *env) create(name string, mods ...itemOption) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := w.newBareItem(name, append([]itemOption{asManaged, w.asOfRevision}, mods...)...)
	Expect(w.client.Create(w.ctx, di)).To(Succeed())
	return di
}

// newBareItem returns an item as a user would write it, without the metadata that Landscaper adds.
func (w *env) newBareItem(name string, mods ...itemOption) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec: lsv1alpha1.DeployItemSpec{Type: w.typ, Configuration: &runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"flow.deployerkit.dev/v1","kind":"Config"}`),
		}},
	}
	for _, m := range mods {
		m(di)
	}
	return di
}

func asManaged(di *lsv1alpha1.DeployItem) {
	di.Labels = map[string]string{lsv1alpha1.ExecutionManagedByLabel: "execution"}
}

// asOfRevision adds the metadata that Landscaper adds to an item under the job-ID revision.
func (w *env) asOfRevision(di *lsv1alpha1.DeployItem) {
	if w.hasJobs() {
		metav1.SetMetaDataAnnotation(&di.ObjectMeta, lsv1alpha1.DeployerTypeAnnotation, string(w.typ))
	}
}

func withAnnotation(key, value string) itemOption {
	return func(di *lsv1alpha1.DeployItem) { metav1.SetMetaDataAnnotation(&di.ObjectMeta, key, value) }
}

func withOperation(op lsv1alpha1.Operation) itemOption {
	return withAnnotation(lsv1alpha1.OperationAnnotation, string(op))
}

// withFinalizer adds the finalizer that newer versions of Landscaper add.
func withFinalizer(di *lsv1alpha1.DeployItem) {
	di.Finalizers = append(di.Finalizers, lsv1alpha1.LandscaperFinalizer)
}

func withTarget(name string) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Target = &lsv1alpha1.ObjectReference{Name: name} }
}

func withContext(name string) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Context = name }
}

func withTimeout(d time.Duration) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

func withConfig(field string) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		di.Spec.Configuration = &runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"apiVersion":"flow.deployerkit.dev/v1","kind":"Config","field":%q}`, field),
		}
	}
}

// createAndStart creates an item and requests its first job.
func (w *env) createAndStart(name string, mods ...itemOption) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := w.create(name, mods...)
	w.startJob(name)
	return di
}

// startJob requests a job as Landscaper does: with annotations, or with a job ID in the status. It returns the job ID.
func (w *env) startJob(name string) string {
	GinkgoHelper()
	id, err := w.ls.Trigger(w.ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	return id
}

// setOperation sets the operation annotation of an item.
func (w *env) setOperation(name string, op lsv1alpha1.Operation) {
	GinkgoHelper()
	Expect(w.ls.SetOperation(w.ctx, w.key(name), op)).To(Succeed())
}

// delete deletes an item as Landscaper does. Under the job-ID revision, it then creates the job for the deletion. If
// another job is still running, no job is created, because the running job continues with the deletion.
func (w *env) delete(name string) {
	GinkgoHelper()
	before := w.get(name)
	w.markDeleted(name)
	if w.hasJobs() && before.Status.JobID == before.Status.JobIDFinished {
		w.startJob(name)
	}
}

// markDeleted only sets the deletion timestamp, without a job.
func (w *env) markDeleted(name string) {
	GinkgoHelper()
	Expect(w.ls.MarkForDeletion(w.ctx, w.key(name))).To(Succeed())
}

// update changes the metadata or the spec of an item, and repeats the change after a conflict.
func (w *env) update(name string, mods ...itemOption) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := &lsv1alpha1.DeployItem{}
	Eventually(func() error {
		if err := w.client.Get(w.ctx, w.key(name), di); err != nil {
			return err
		}
		for _, m := range mods {
			m(di)
		}
		return w.client.Update(w.ctx, di)
	}).WithContext(w.ctx).Should(Succeed())
	return di
}

// updateStatus changes the status of an item, and repeats the change after a conflict.
func (w *env) updateStatus(name string, change itemOption) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := &lsv1alpha1.DeployItem{}
	Eventually(func() error {
		if err := w.client.Get(w.ctx, w.key(name), di); err != nil {
			return err
		}
		change(di)
		return w.client.Status().Update(w.ctx, di)
	}).WithContext(w.ctx).Should(Succeed())
	return di
}

// patchStatus sends a merge patch to the status subresource.
func (w *env) patchStatus(name string, status map[string]any) {
	GinkgoHelper()
	body, err := json.Marshal(map[string]any{"status": status})
	Expect(err).NotTo(HaveOccurred())
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	Expect(w.client.Status().Patch(w.ctx, di, client.RawPatch("application/merge-patch+json", body))).To(Succeed())
}

// cancelJob ends the job as Landscaper does. Under the job-ID revision, Landscaper ends a job when a user interrupts
// it. Under the annotation revision, Landscaper ends a job after a timeout.
func (w *env) cancelJob(name string) {
	GinkgoHelper()
	if w.hasJobs() {
		Expect(w.ls.Interrupt(w.ctx, w.key(name))).To(Succeed())
		return
	}
	w.updateStatus(name, func(di *lsv1alpha1.DeployItem) {
		now := metav1.Now().Rfc3339Copy()
		di.Status.Phase = phases.Failed
		di.Status.LastError = &lsv1alpha1.Error{
			Operation: "InterruptOperation", Reason: "InterruptOperation", Message: "ended by Landscaper",
			LastTransitionTime: now, LastUpdateTime: now,
		}
	})
}

// finished waits until the last job of an item has ended.
func (w *env) finished(name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	ctx, cancel := w.withTimeout()
	defer cancel()
	di, err := w.ls.WaitUntilFinished(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	return di
}

// runSuccessfully deploys an item and waits until its job has succeeded.
func (w *env) runSuccessfully(name string, mods ...itemOption) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.createAndStart(name, mods...)
	di := w.finished(name)
	Expect(di.Status.Phase).To(Equal(phases.Succeeded))
	return di
}

// waitUntil waits until the function `ok` returns true for an item.
func (w *env) waitUntil(name string, ok func(*lsv1alpha1.DeployItem) bool) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := &lsv1alpha1.DeployItem{}
	Eventually(func(g Gomega) {
		di = &lsv1alpha1.DeployItem{}
		g.Expect(w.client.Get(w.ctx, w.key(name), di)).To(Succeed())
		g.Expect(ok(di)).To(BeTrue(), "the item: %s", formatItem(di))
	}).WithContext(w.ctx).Should(Succeed())
	return di
}

// expectUnchanged requires that an item is not written during a short time.
func (w *env) expectUnchanged(name string) {
	GinkgoHelper()
	before := w.get(name)
	Consistently(func(g Gomega) {
		g.Expect(formatItem(w.get(name))).To(Equal(formatItem(before)))
	}).WithContext(w.ctx).Should(Succeed())
}

// waitUntilDeleted waits until an item does not exist any more.
func (w *env) waitUntilDeleted(name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		di := &lsv1alpha1.DeployItem{}
		err := w.client.Get(w.ctx, w.key(name), di)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v\n%s", err, formatItem(di))
	}).WithContext(w.ctx).Should(Succeed())
}

// formatItem returns an item as text, for comparisons and messages.
func formatItem(di *lsv1alpha1.DeployItem) string {
	di = di.DeepCopy()
	di.ManagedFields = nil
	text, err := json.MarshalIndent(di, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// listCalls returns the actions that have been called for an item so far, in order.
func (w *env) listCalls(name string) []contract.Action {
	actions := []contract.Action{}
	for _, call := range w.fake.ListCalls(w.key(name)) {
		actions = append(actions, call.Action)
	}
	return actions
}

// waitForCalls waits until exactly these actions have been called for an item.
func (w *env) waitForCalls(name string, actions ...contract.Action) {
	GinkgoHelper()
	Eventually(func() []contract.Action { return w.listCalls(name) }).WithContext(w.ctx).Should(Equal(actions))
}

// listReconciles returns one list for each reconcile. The list contains the types of the hooks that were called in this
// reconcile, in order. It begins with the hook type Start. Use listReconciles only in specs with a single item.
func (w *env) listReconciles() [][]extension.HookType {
	var passes [][]extension.HookType
	for _, t := range w.hooks.Types() {
		if t == extension.StartHook {
			passes = append(passes, nil)
		}
		last := len(passes) - 1
		passes[last] = append(passes[last], t)
	}
	return passes
}

// findReconcile returns all hook types of the first reconcile in which a hook of the given type was called.
func (w *env) findReconcile(t extension.HookType) []extension.HookType {
	for _, pass := range w.listReconciles() {
		if slices.Contains(pass, t) {
			return pass
		}
	}
	return nil
}

// sumHookCalls returns how often hooks of a type were called.
func (w *env) sumHookCalls(t extension.HookType) int {
	n := 0
	for _, seen := range w.hooks.Types() {
		if seen == t {
			n++
		}
	}
	return n
}

// getErrorCodes returns the codes of the last error of an item.
func getErrorCodes(di *lsv1alpha1.DeployItem) []lsv1alpha1.ErrorCode {
	if di.Status.LastError == nil {
		return nil
	}
	return di.Status.LastError.Codes
}
