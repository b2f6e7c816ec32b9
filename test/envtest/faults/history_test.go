// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// history watches every version of the items in a namespace. It records violations of these rules: a job ends only
// once, and it does not continue after its end.
type history struct {
	mu     sync.Mutex
	last   map[string]lsv1alpha1.DeployItemStatus
	ended  map[string]int // number of ends of each job; the keys are job IDs
	faults []string
}

// watchHistory starts a history, which watches until the spec ends. Call it before the first item is created.
func (w *env) watchHistory() *history {
	GinkgoHelper()
	h := &history{last: map[string]lsv1alpha1.DeployItemStatus{}, ended: map[string]int{}}
	c, err := client.NewWithWatch(cp.Config, client.Options{Scheme: w.Client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithoutCancel(GinkgoTB().Context()))
	items, err := c.Watch(ctx, &lsv1alpha1.DeployItemList{}, client.InNamespace(w.Namespace))
	Expect(err).NotTo(HaveOccurred())
	var running sync.WaitGroup
	running.Go(func() {
		for e := range items.ResultChan() {
			h.add(e)
		}
	})
	DeferCleanup(func() { cancel(); items.Stop(); running.Wait() })
	return h
}

// add checks the next version of an item.
func (h *history) add(e watch.Event) {
	di, ok := e.Object.(*lsv1alpha1.DeployItem)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok || e.Type == watch.Deleted {
		if !ok {
			h.faults = append(h.faults, fmt.Sprintf("the watch broke: %v", e.Object))
		}
		return
	}
	was, is := h.last[di.Name], di.Status
	h.last[di.Name] = is
	fault := func(text string) {
		h.faults = append(h.faults, fmt.Sprintf("%s, job %s: %s (phase %s after %s)", di.Name, is.JobID, text, is.Phase, was.Phase))
	}
	switch over := is.JobID != "" && is.JobID == is.JobIDFinished; {
	case is.JobIDFinished != was.JobIDFinished:
		h.ended[is.JobIDFinished]++
		if h.ended[is.JobIDFinished] > 1 {
			fault("ended again")
		}
		if !over {
			fault("another job ended")
		}
		fallthrough
	case over:
		if !contract.IsFinal(is.Phase) {
			fault("is finished without a final phase")
		}
	}
}

// expectEndedOnce requires that each of the jobs ended once and that there were no violations.
func (h *history) expectEndedOnce(jobs ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		h.mu.Lock()
		defer h.mu.Unlock()
		g.Expect(h.faults).To(BeEmpty())
		for _, job := range jobs {
			g.Expect(h.ended[job]).To(Equal(1), "job %s", job)
		}
	}).Should(Succeed())
}
