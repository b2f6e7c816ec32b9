// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/landscapertest"
)

// comparedType is the type of the deploy items for which the test acts as the deployer.
const comparedType = "example.org/played"

// landscaperDriver starts the jobs of an item. There are two implementations: one uses the real Landscaper, and one
// uses the simulated Landscaper of package landscapertest, the stand-in.
type landscaperDriver interface { //nolint:interfacebloat // of a test, with two implementations
	// install creates or updates the item with a value, and requests a job.
	install(ctx context.Context, value string) error
	// startJob requests another job. If the item is being deleted, this job deletes the item.
	startJob(ctx context.Context) error
	interruptJob(ctx context.Context) error
	// waitForPickupTimeout makes a job fail because no deployer has picked it up.
	waitForPickupTimeout(ctx context.Context) error
	deleteItem(ctx context.Context) error
	// item returns the item. With the real Landscaper, the name of the item is unknown until the item exists.
	item(ctx context.Context) (*lsv1alpha1.DeployItem, error)
}

// realLandscaper implements master with an Installation of the real Landscaper.
type realLandscaper struct{ namespace string }

func (r realLandscaper) install(ctx context.Context, value string) error {
	deploy, err := yaml.Marshal(map[string]any{"deployItems": []any{map[string]any{
		"name": "played", "type": comparedType, "config": map[string]any{"apiVersion": "example.org/v1", "kind": "Played", "value": value},
	}}})
	if err != nil {
		return err
	}
	files, err := json.Marshal(map[string]string{
		"deploy.yaml": string(deploy),
		"blueprint.yaml": "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Blueprint\njsonSchema: https://json-schema.org/draft/2019-09/schema\n" +
			"deployExecutions: [{name: default, type: GoTemplate, file: /deploy.yaml}]\n",
	})
	if err != nil {
		return err
	}
	// Landscaper may still be writing the Installation, so the update is repeated after a conflict.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		in, err := r.get(ctx)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		missing := err != nil
		in.Namespace, in.Name = r.namespace, "played"
		in.Spec.Blueprint.Inline = &lsv1alpha1.InlineBlueprint{Filesystem: lsv1alpha1.NewAnyJSON(files)}
		metav1.SetMetaDataAnnotation(&in.ObjectMeta, lsv1alpha1.OperationAnnotation, string(lsv1alpha1.ReconcileOperation))
		if missing {
			return c.Create(ctx, in)
		}
		return c.Update(ctx, in)
	})
}

func (r realLandscaper) get(ctx context.Context) (*lsv1alpha1.Installation, error) {
	in := &lsv1alpha1.Installation{}
	err := c.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: "played"}, in)
	return in, err
}

func (r realLandscaper) setOperation(ctx context.Context, operation lsv1alpha1.Operation) error {
	in, err := r.get(ctx)
	if err != nil {
		return err
	}
	before := in.DeepCopy()
	metav1.SetMetaDataAnnotation(&in.ObjectMeta, lsv1alpha1.OperationAnnotation, string(operation))
	return c.Patch(ctx, in, client.MergeFrom(before))
}

// startJob requests another job. Before that, it waits until the Installation shows the end of the last job.
func (r realLandscaper) startJob(ctx context.Context) error {
	Eventually(func() bool {
		in, err := r.get(ctx)
		return err == nil && in.Status.InstallationPhase.IsFinal() && in.Status.JobID == in.Status.JobIDFinished
	}, patience).Should(BeTrue())
	return r.setOperation(ctx, lsv1alpha1.ReconcileOperation)
}

func (r realLandscaper) interruptJob(ctx context.Context) error {
	return r.setOperation(ctx, lsv1alpha1.InterruptOperation)
}

func (r realLandscaper) waitForPickupTimeout(context.Context) error { return nil }

func (r realLandscaper) deleteItem(ctx context.Context) error {
	in, err := r.get(ctx)
	if err != nil {
		return err
	}
	return c.Delete(ctx, in)
}

func (r realLandscaper) item(ctx context.Context) (*lsv1alpha1.DeployItem, error) {
	list := &lsv1alpha1.DeployItemList{}
	if err := c.List(ctx, list, client.InNamespace(r.namespace)); err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		in, err := r.get(ctx)
		return nil, fmt.Errorf("%d items, Installation: %+v (%w)", len(list.Items), in.Status.LastError, err)
	}
	return &list.Items[0], nil
}

// simulatedLandscaper implements master with the simulated Landscaper.
type simulatedLandscaper struct {
	*landscapertest.Landscaper
	key types.NamespacedName
}

func (s simulatedLandscaper) install(ctx context.Context, value string) error {
	config := fmt.Sprintf(`{"apiVersion":"example.org/v1","kind":"Played","value":%q}`, value)
	if _, err := s.Get(ctx, s.key); err != nil {
		return s.Deploy(ctx, s.Item(s.key.Namespace, s.key.Name, comparedType, config))
	}
	if err := s.Update(ctx, s.key, config); err != nil {
		return err
	}
	return s.startJob(ctx)
}

func (s simulatedLandscaper) startJob(ctx context.Context) error {
	_, err := s.Trigger(ctx, s.key)
	return err
}

func (s simulatedLandscaper) interruptJob(ctx context.Context) error { return s.Interrupt(ctx, s.key) }

func (s simulatedLandscaper) waitForPickupTimeout(ctx context.Context) error {
	Eventually(func() error {
		if err := s.ApplyTimeouts(ctx, s.key.Namespace); err != nil {
			return err
		}
		di, err := s.Get(ctx, s.key)
		if err == nil && di.Status.JobID != di.Status.JobIDFinished {
			err = errors.New("not expired yet")
		}
		return err
	}, patience).Should(Succeed())
	return nil
}

func (s simulatedLandscaper) deleteItem(ctx context.Context) error {
	if err := s.MarkForDeletion(ctx, s.key); err != nil {
		return err
	}
	return s.startJob(ctx)
}

func (s simulatedLandscaper) item(ctx context.Context) (*lsv1alpha1.DeployItem, error) {
	return s.Get(ctx, s.key)
}

// comparedStep is a step that runs with both implementations of master. It consists of an action, and a function that
// reports whether the result of the action is visible.
type comparedStep struct {
	title string
	do    func(ctx context.Context, m landscaperDriver) error
	done  func(di *lsv1alpha1.DeployItem, job string) bool // job is the ID of the job before the step
}

// hasNewJob and hasEnded are values for the field `done` of a played step.
func hasNewJob(di *lsv1alpha1.DeployItem, job string) bool {
	return di.Status.JobID != job && di.Status.JobID != di.Status.JobIDFinished
}

func hasEnded(di *lsv1alpha1.DeployItem, _ string) bool {
	return di.Status.JobID == di.Status.JobIDFinished
}

func returnTrue(*lsv1alpha1.DeployItem, string) bool { return true }

// updateAsDeployer returns an action that changes the status of the item as a deployer would.
func updateAsDeployer(change func(s *lsv1alpha1.DeployItemStatus)) func(ctx context.Context, m landscaperDriver) error {
	return func(ctx context.Context, m landscaperDriver) error {
		di, err := m.item(ctx)
		if err != nil {
			return err
		}
		di.Status.ObservedGeneration, di.Status.LastReconcileTime = di.Generation, &metav1.Time{Time: di.Status.JobIDGenerationTime.Time}
		change(&di.Status)
		return c.Status().Update(ctx, di)
	}
}

// endJob returns a function that ends the job in a phase.
func endJob(phase lsv1alpha1.DeployItemPhase) func(s *lsv1alpha1.DeployItemStatus) {
	return func(s *lsv1alpha1.DeployItemStatus) { s.Phase, s.JobIDFinished = phase, s.JobID }
}

// startProgressing changes the status as a deployer does when it starts a job.
func startProgressing(s *lsv1alpha1.DeployItemStatus) {
	s.Phase = lsv1alpha1.DeployItemPhases.Progressing
}

// comparedSteps lists the steps that are run with both implementations of master.
var comparedSteps = []comparedStep{
	{"install", func(ctx context.Context, m landscaperDriver) error { return m.install(ctx, "one") }, hasNewJob},
	{"the deployer begins", updateAsDeployer(startProgressing), returnTrue},
	{"the deployer succeeds", updateAsDeployer(endJob(lsv1alpha1.DeployItemPhases.Succeeded)), returnTrue},
	{"another job", func(ctx context.Context, m landscaperDriver) error { return m.startJob(ctx) }, hasNewJob},
	{"the deployer fails", updateAsDeployer(endJob(lsv1alpha1.DeployItemPhases.Failed)), returnTrue},
	{"an update", func(ctx context.Context, m landscaperDriver) error { return m.install(ctx, "two") }, hasNewJob},
	{"the deployer begins again", updateAsDeployer(startProgressing), returnTrue},
	{"an interrupt", func(ctx context.Context, m landscaperDriver) error { return m.interruptJob(ctx) }, hasEnded},
	{"a job after the interrupt", func(ctx context.Context, m landscaperDriver) error { return m.startJob(ctx) }, hasNewJob},
	{"the pickup timeout", func(ctx context.Context, m landscaperDriver) error { return m.waitForPickupTimeout(ctx) }, hasEnded},
	{"deletion", func(ctx context.Context, m landscaperDriver) error { return m.deleteItem(ctx) }, hasNewJob},
	{"the deployer fails to delete", updateAsDeployer(endJob(lsv1alpha1.DeployItemPhases.DeleteFailed)), returnTrue},
	{"deletion again", func(ctx context.Context, m landscaperDriver) error { return m.startJob(ctx) }, hasNewJob},
	{"an interrupt of the deletion", func(ctx context.Context, m landscaperDriver) error { return m.interruptJob(ctx) }, hasEnded},
	{"deletion once more", func(ctx context.Context, m landscaperDriver) error { return m.startJob(ctx) }, hasNewJob},
}

// history runs all steps. It returns the item after each step as text. The text does not contain values that differ
// between two runs.
func history(ctx context.Context, m landscaperDriver) []string {
	GinkgoHelper()
	var out, jobs []string
	var begun time.Time
	for _, step := range comparedSteps {
		last := ""
		if len(jobs) > 0 {
			last = jobs[len(jobs)-1]
		}
		// Times in the status are whole seconds, so each job must start in another second.
		Eventually(func() bool { return time.Since(begun) > 1100*time.Millisecond }, patience).Should(BeTrue())
		Expect(step.do(ctx, m)).To(Succeed(), step.title)
		var di *lsv1alpha1.DeployItem
		Eventually(func(g Gomega) {
			var err error
			di, err = m.item(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(step.done(di, last)).To(BeTrue(), "%s: %+v", step.title, di.Status)
		}, patience).Should(Succeed())
		if !slices.Contains(jobs, di.Status.JobID) {
			jobs = append(jobs, di.Status.JobID)
			begun = di.Status.JobIDGenerationTime.Time
		}
		out = append(out, "# "+step.title+"\n"+formatItem(di, jobs))
	}
	// The deployer removes the finalizer.
	di, err := m.item(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Patch(ctx, di, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	return out
}

// timePattern matches times in JSON.
var timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// formatItem returns the fields of an item that Landscaper writes, as YAML.
func formatItem(di *lsv1alpha1.DeployItem, jobs []string) string {
	GinkgoHelper()
	status := di.Status.DeepCopy()
	for i, job := range jobs {
		for _, id := range []*string{&status.JobID, &status.JobIDFinished} {
			if *id == job {
				*id = fmt.Sprintf("job %d", i+1)
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{
		"annotations": di.Annotations, "labels": di.Labels, "finalizers": di.Finalizers, "deleted": di.DeletionTimestamp != nil,
		"generation": di.Generation, "spec": di.Spec, "status": status,
	})
	Expect(err).NotTo(HaveOccurred())
	return timePattern.ReplaceAllString(string(text), "TIME")
}

var _ = Describe("Landscaper of package landscapertest", func() {
	It("writes the same as the real Landscaper, step by step", func(ctx SpecContext) {
		namespaces := []string{"compare-real", "compare-standin"}
		for _, name := range namespaces {
			Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
			Eventually(func() error {
				return c.Get(ctx, types.NamespacedName{Namespace: name, Name: lsv1alpha1.DefaultContextName}, &lsv1alpha1.Context{})
			}, patience).Should(Succeed())
		}
		ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{ManagedBy: "played", DeployerType: true, Pickup: pickup})
		want := history(ctx, realLandscaper{namespaces[0]})
		got := history(ctx, simulatedLandscaper{ls, types.NamespacedName{Namespace: namespaces[1], Name: "played"}})
		if diff := cmp.Diff(want, got); diff != "" {
			Fail("(-real +stand-in)\n" + diff)
		}
	}, SpecTimeout(0))
})
