// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deployerkit/deployerkit/contract"
)

// newRecordedHistory returns a client of a fake cluster, and a running history of the namespace "ns".
func newRecordedHistory(t *testing.T) (client.WithWatch, *History) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := lsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	h, err := Record(t.Context(), c, "ns", contract.RevisionJobID)
	if err != nil {
		t.Fatal(err)
	}
	return c, h
}

func TestRecord(t *testing.T) {
	c, h := newRecordedHistory(t)
	ctx := t.Context()
	di := newGoodItem()
	di.ResourceVersion, di.ManagedFields = "", nil
	elsewhere := di.DeepCopy()
	elsewhere.Namespace = "elsewhere"
	late := di.DeepCopy()
	late.Name = "late"
	for _, one := range []item{di, elsewhere, late} {
		if err := c.Create(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	di.Status.Phase = phases.Succeeded // this version violates a rule, because jobIDFinished is not set
	if err := c.Update(ctx, di); err != nil {
		t.Fatal(err)
	}
	late.Finalizers = nil
	if err := c.Update(ctx, late); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, late); err != nil {
		t.Fatal(err)
	}
	if err := h.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	h.Stop()
	if diff := cmp.Diff([]string{"a", "late"}, h.ListNames()); diff != "" {
		t.Errorf("Names(): -want, +got:\n%s", diff)
	}
	if got := len(h.GetVersions("a")); got != 2 {
		t.Errorf("Versions(a): got %d, want 2", got)
	}
	if got := len(h.GetVersions("late")); got != 3 {
		t.Errorf("Versions(late): got %d, want 3: created, changed, deleted", got)
	}
	if got := h.GetVersions("missing"); got != nil {
		t.Errorf("Versions(missing): got %v, want none", got)
	}
	want := []string{
		`one-write: ns/a@` + di.ResourceVersion + `: phase "Succeeded" was written without jobIDFinished`,
		`finalizer: ns/late@` + h.GetVersions("late")[1].ResourceVersion + `: the phase is "Progressing", but the item lacks the finalizer`,
	}
	if diff := cmp.Diff(want, h.ListViolations()); diff != "" {
		t.Errorf("Faults(): -want, +got:\n%s", diff)
	}
	if got, want := h.String(), "a: Progressing > Succeeded (2 versions); r []: m"; !strings.HasPrefix(got, want) {
		t.Errorf("String(): got %q, want %q first", got, want)
	}
}

func TestIncompleteHistory(t *testing.T) {
	_, h := newRecordedHistory(t)
	h.add(watch.Event{Type: watch.Error, Object: &metav1.Status{Message: "too old"}})
	if got := h.ListViolations(); len(got) != 1 || !strings.Contains(got[0], "history of namespace ns: the watch failed") {
		t.Errorf("Faults(): got %q", got)
	}
	if err := h.Sync(t.Context()); err == nil {
		t.Error("Sync(): got no error")
	}
	h.Stop()
}

func TestJobMustNotFinishTwice(t *testing.T) {
	ended := func(phase lsv1alpha1.DeployItemPhase, seconds int64) item {
		di := newGoodItem()
		di.Status.Phase, di.Status.JobIDFinished = phase, di.Status.JobID
		di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{FinishedTime: new(metav1.NewTime(time.Unix(seconds, 0)))}
		return di
	}
	next := ended(phases.Failed, 9)
	next.Status.JobID = "3" // the next job was requested, but the phase and the times still belong to the last job
	for name, tc := range map[string]struct {
		versions []item
		want     bool
	}{
		"job that finished once":                     {[]item{newGoodItem(), ended(phases.Succeeded, 5), ended(phases.Succeeded, 5)}, false},
		"job that finished again with another phase": {[]item{newGoodItem(), ended(phases.Succeeded, 5), ended(phases.Failed, 5)}, true},
		"job that finished again at another time":    {[]item{newGoodItem(), ended(phases.Succeeded, 5), ended(phases.Succeeded, 6)}, true},
		"two jobs that finished once":                {[]item{ended(phases.Failed, 9), next}, false},
	} {
		found := ""
		for _, c := range rules {
			if c.Name == "ends-once" {
				found = findViolation(c, tc.versions)
			}
		}
		if (found != "") != tc.want {
			t.Errorf("%s: got %q, want a fault: %t", name, found, tc.want)
		}
	}
}
