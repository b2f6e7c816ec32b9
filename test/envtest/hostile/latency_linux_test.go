// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// succeeded is the phase of an item whose last job succeeded.
const succeeded = lsv1alpha1.PhaseStringSucceeded

// quiet is the namespace of the items that are not attacked. The stopwatch compares the other items with them.
const quiet = "quiet"

// latencyRecorder measures how long items wait. The wait of an item begins when the item gets its job, and ends with
// the first write of the deployer. Each item has a twin, which gets its job right after the item. The twin is an item
// of the mock deployer, whose process is otherwise idle. The twin waits only because the machine, the API server or
// this test is slow, for example because other suites are running. Therefore, its wait is subtracted from the wait of
// the item.
type latencyRecorder struct {
	mu              sync.Mutex
	handed, started map[types.NamespacedName]time.Time
	// ended contains, for each item, the phase in which the last job of the item ended, and the error of this job if
	// there is one.
	ended map[types.NamespacedName]string
}

// newStopwatch watches the items of some namespaces and their twins until the end of the spec.
func newStopwatch(ctx context.Context, namespaces ...string) *latencyRecorder {
	GinkgoHelper()
	s := &latencyRecorder{
		handed: map[types.NamespacedName]time.Time{}, started: map[types.NamespacedName]time.Time{}, ended: map[types.NamespacedName]string{},
	}
	for _, namespace := range append(namespaces, quiet) {
		w, err := c.Watch(ctx, &lsv1alpha1.DeployItemList{}, client.InNamespace(namespace))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		go func() {
			for event := range w.ResultChan() {
				if di, ok := event.Object.(*lsv1alpha1.DeployItem); ok {
					s.recordVersion(di, time.Now())
				}
			}
		}()
	}
	return s
}

// recordVersion records a version of an item.
func (s *latencyRecorder) recordVersion(di *lsv1alpha1.DeployItem, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, status := client.ObjectKeyFromObject(di), di.Status
	for when, is := range map[*map[types.NamespacedName]time.Time]bool{&s.handed: status.JobID != "", &s.started: status.Phase != ""} {
		if _, known := (*when)[key]; is && !known {
			(*when)[key] = now
		}
	}
	if status.JobID != "" && status.JobID == status.JobIDFinished {
		s.ended[key] = string(status.Phase)
		if status.LastError != nil {
			s.ended[key] += ": " + status.LastError.Message
		}
	}
}

// createWithTwin deploys an item and its twin.
func (s *latencyRecorder) createWithTwin(ctx context.Context, di *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	twin := newMockItem(quiet, di.Namespace+"-"+di.Name)
	Expect(ls.Create(ctx, di)).To(Succeed())
	Expect(ls.Create(ctx, twin)).To(Succeed())
	for _, item := range []*lsv1alpha1.DeployItem{di, twin} {
		key := client.ObjectKeyFromObject(item)
		_, err := ls.Trigger(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		s.mu.Lock()
		if now, seen := time.Now(), s.handed[key]; seen.IsZero() || now.Before(seen) {
			s.handed[key] = now
		}
		s.mu.Unlock()
	}
}

// finished returns the number of finished items in a namespace for each phase.
func (s *latencyRecorder) finished(namespace string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for key, how := range s.ended {
		if key.Namespace == namespace {
			out[how]++
		}
	}
	return out
}

// waitForAll waits until the given number of items in a namespace have finished. All of these items must succeed.
func (s *latencyRecorder) waitForAll(ctx context.Context, namespace string, count int) {
	GinkgoHelper()
	Eventually(s.finished).WithArguments(namespace).WithContext(ctx).WithTimeout(patience).WithPolling(50 * time.Millisecond).
		Should(Equal(map[string]int{succeeded: count}))
}

// maxWait considers the items of a namespace that have a twin and were measured since the last call. It returns two
// maximums: the longest wait of an item, and the greatest difference between the waits of an item and its twin.
func (s *latencyRecorder) maxWait(namespace string) (wait, excess time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := func(key types.NamespacedName) time.Duration { return s.started[key].Sub(s.handed[key]) }
	for key := range s.handed {
		twin := types.NamespacedName{Namespace: quiet, Name: namespace + "-" + key.Name}
		if _, has := s.handed[twin]; has && key.Namespace == namespace {
			wait = max(wait, of(key))
			excess = max(excess, of(key)-max(of(twin), 0))
			delete(s.handed, twin)
		}
	}
	return wait, excess
}
