// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// protocol implements those parts of Landscaper that differ between the revisions of the contract.
type protocol interface {
	// hasJobs reports whether runs and deletions are requested with jobs. If not, the creation, update or deletion of an
	// item is itself the request.
	hasJobs() bool
	// prepareCreate and update change an item before it is sent to the API server.
	prepareCreate(di *lsv1alpha1.DeployItem)
	prepareUpdate(di *lsv1alpha1.DeployItem, now string)
	// isFinished reports whether the run of an item has ended.
	isFinished(di *lsv1alpha1.DeployItem) (bool, error)
	// runSince returns the time when the current run was requested. If the revision does not record this time, runSince
	// returns the time when the run began.
	runSince(di *lsv1alpha1.DeployItem) *metav1.Time
	// addFailure adds to `status` the fields with which Landscaper marks a run that it ends itself. The argument e is the
	// error of that run.
	addFailure(status map[string]any, di *lsv1alpha1.DeployItem, e map[string]any, now string)
	// pendingSince returns the time of a request for a run that no deployer has started yet. It returns false if there
	// is no such request.
	pendingSince(di *lsv1alpha1.DeployItem) (time.Time, bool)
	// applyTimeouts applies the timeouts of a run that has started.
	applyTimeouts(ctx context.Context, l *Landscaper, di *lsv1alpha1.DeployItem) error
}

var protocols = map[contract.Revision]protocol{contract.RevisionJobID: jobProtocol{}, contract.RevisionAnnotation: annotationProtocol{}}

// selectProtocol returns the protocol of a revision, and c. If the revision is unknown, selectProtocol does not return
// c, but a client whose calls all fail.
func selectProtocol(revision contract.Revision, c client.Client) (protocol, client.Client) {
	if p, ok := protocols[revision]; ok {
		return p, c
	}
	return jobProtocol{}, refusingClient{err: fmt.Errorf("there is no revision %q", revision)}
}

// refusingClient is a client whose methods return an error. It covers all methods that a Landscaper calls.
type refusingClient struct {
	client.Client
	err error
}

func (c refusingClient) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return c.err
}

func (c refusingClient) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return c.err
}

func (c refusingClient) Create(context.Context, client.Object, ...client.CreateOption) error {
	return c.err
}

func (c refusingClient) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return c.err
}

func (c refusingClient) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return c.err
}

func (c refusingClient) Status() client.SubResourceWriter { return refusingStatus{err: c.err} }

type refusingStatus struct {
	client.SubResourceWriter
	err error
}

func (c refusingStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return c.err
}
