// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"encoding/json"
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

// jobsSeen is what a watch saw of the jobs of a namespace.
type jobsSeen struct {
	mu     sync.Mutex
	last   map[string]string // by item: the job that ended last
	ended  map[string]int    // by job
	faults []string
}

// watchJobs begins before anything happens and lasts until the spec ends.
func (w *env) watchJobs() *jobsSeen {
	GinkgoHelper()
	seen := &jobsSeen{last: map[string]string{}, ended: map[string]int{}}
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

// add looks at the next version of an item.
func (s *jobsSeen) add(di *lsv1alpha1.DeployItem) {
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

// endedOnce fails unless a job ended exactly once. A job that deletes an item ends with the item, and may report its
// end before.
func (s *jobsSeen) endedOnce(job string, deletes bool) {
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

// inventory is what the item's status says about its objects.
func (w *env) inventory(ctx context.Context, name string) []apply.Entry {
	GinkgoHelper()
	di, err := w.Landscaper.Get(ctx, w.Key(name))
	Expect(err).NotTo(HaveOccurred())
	status, err := manifest.DecodeStatus(di)
	Expect(err).NotTo(HaveOccurred())
	inventory := apply.Inventory{}
	if status.Inventory != nil {
		Expect(json.Unmarshal(status.Inventory, &inventory)).To(Succeed())
	}
	return inventory.Entries
}
