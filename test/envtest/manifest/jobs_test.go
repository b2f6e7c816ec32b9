// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"fmt"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/manifest"
)

// jobRecorder records, from a watch, which jobs in a namespace have ended.
type jobRecorder struct {
	mu     sync.Mutex
	last   map[string]string // for each item, the ID of the job that ended last
	ended  map[string]int    // number of ends of each job; the keys are job IDs
	faults []string
}

// watchJobs starts a watch that records the ends of jobs until the spec ends. Call it before the first item is created.
func (w *env) watchJobs() *jobRecorder {
	GinkgoHelper()
	seen := &jobRecorder{last: map[string]string{}, ended: map[string]int{}}
	c, err := client.NewWithWatch(cp.Config, client.Options{Scheme: w.Client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithoutCancel(GinkgoTB().Context()))
	items, err := c.Watch(ctx, &lsv1alpha1.DeployItemList{}, client.InNamespace(w.Namespace))
	Expect(err).NotTo(HaveOccurred())
	var running sync.WaitGroup
	running.Go(func() {
		for e := range items.ResultChan() {
			if di, ok := e.Object.(*lsv1alpha1.DeployItem); ok && e.Type != watch.Deleted {
				seen.add(di)
			}
		}
	})
	DeferCleanup(func() { cancel(); items.Stop(); running.Wait() })
	return seen
}

// add records the next version of an item.
func (s *jobRecorder) add(di *lsv1alpha1.DeployItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	finished := di.Status.JobIDFinished
	if finished != "" && finished == di.Status.JobID && !contract.IsFinal(di.Status.Phase) {
		s.faults = append(s.faults, fmt.Sprintf("%s: job %s is finished with phase %q", di.Name, finished, di.Status.Phase))
	}
	if finished != s.last[di.Name] {
		s.last[di.Name] = finished
		s.ended[finished]++
	}
}

// expectEndedOnce requires that a job ended exactly once. If the job deletes its item, the end of the job may not be
// recorded, because the item no longer exists then.
func (s *jobRecorder) expectEndedOnce(job string, deletes bool) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		s.mu.Lock()
		defer s.mu.Unlock()
		g.Expect(s.faults).To(BeEmpty())
		g.Expect(s.ended[job]).To(BeNumerically("<=", 1))
		if !deletes {
			g.Expect(s.ended[job]).To(Equal(1))
		}
	}).WithTimeout(patience).Should(Succeed())
}

// inventory returns the entries of the inventory in an item's status.
func (w *env) inventory(ctx context.Context, name string) []apply.Entry {
	GinkgoHelper()
	di, err := w.Landscaper.Get(ctx, w.Key(name))
	Expect(err).NotTo(HaveOccurred())
	status, err := manifest.DecodeStatus(di)
	Expect(err).NotTo(HaveOccurred())
	return status.Inventory.Entries
}
