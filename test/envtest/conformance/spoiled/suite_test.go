// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const (
	// busy is the number of subjects that run at the same time. Subjects that only wait for a time limit are not
	// counted.
	busy = 4
	// notHappening is the time limit of checks that require that something does not happen.
	notHappening = 15 * time.Second
	// patience is the time limit for a write that a conforming deployer does not make.
	patience = 3 * time.Second
	// longest is the time limit for all subjects together on a loaded machine.
	longest = 15 * time.Minute
)

func TestSpoiled(t *testing.T) {
	world.RunWithLog(t, "spoiled", logr.Discard())
}

// clusters contains the path of a kubeconfig for the cluster of each revision. All subjects share these clusters.
var clusters = map[contract.Revision]string{}

var _ = BeforeSuite(func(ctx SpecContext) {
	for revision, o := range map[contract.Revision]controlplane.Options{
		contract.RevisionJobID:      {},
		contract.RevisionAnnotation: {CRDs: controlplane.AnnotationRevisionCRDs()},
	} {
		path, err := world.StartControlPlane(ctx, o).WriteKubeconfig("")
		Expect(err).NotTo(HaveOccurred())
		clusters[revision] = path
	}
	ctx2, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(func() {
		cancel()
		for _, t := range trials {
			<-t.ended
		}
	})
	slots := make(chan struct{}, busy)
	for _, t := range trials {
		t.subject.Kubeconfig = clusters[t.revision]
		go t.run(ctx2, slots)
	}
})

// trial is a subject whose checks are running.
type trial struct {
	subject  conformance.Subject
	revision contract.Revision
	waits    bool

	report *conformance.Report
	err    error
	ended  chan struct{}
}

// trials contains all trials in the order in which they start. They start before the first spec and run concurrently.
var trials []*trial

// startTrial starts a trial.
func startTrial(revision contract.Revision, waits bool, s conformance.Subject) *trial {
	s.Revisions = []contract.Revision{revision}
	if waits {
		s.Bounds.Finish = notHappening
	}
	t := &trial{subject: s, revision: revision, waits: waits, ended: make(chan struct{})}
	trials = append(trials, t)
	return t
}

func (t *trial) run(ctx context.Context, slots chan struct{}) {
	defer close(t.ended)
	if !t.waits {
		slots <- struct{}{}
		defer func() { <-slots }()
	}
	t.subject.Bounds.Quiet, t.subject.Bounds.Finish = testtime.ScaleTimeout(t.subject.Bounds.Quiet), testtime.ScaleTimeout(t.subject.Bounds.Finish)
	t.report, t.err = conformance.Execute(ctx, t.subject)
}

// waitForReport waits for the end of the trial and returns its report. If the spec fails, the report is printed.
func (t *trial) waitForReport(ctx SpecContext) *conformance.Report {
	GinkgoHelper()
	Eventually(ctx, t.ended).WithTimeout(longest).Should(BeClosed())
	Expect(t.err).NotTo(HaveOccurred())
	return t.report
}
