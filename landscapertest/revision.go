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

// protocol is the part of Landscaper that differs between the revisions of the contract.
type protocol interface {
	// jobs reports whether jobs request runs and deletions. Otherwise creating, updating and deleting an item requests
	// them.
	jobs() bool
	// create and update prepare an item before it is created or updated.
	create(di *lsv1alpha1.DeployItem)
	update(di *lsv1alpha1.DeployItem, now string)
	// finished reports whether the run of an item has ended.
	finished(di *lsv1alpha1.DeployItem) (bool, error)
	// runSince returns when the run was requested or, if that is not recorded, when it began.
	runSince(di *lsv1alpha1.DeployItem) *metav1.Time
	// fail adds to a status what ends a run with e instead of the deployer.
	fail(status map[string]any, di *lsv1alpha1.DeployItem, e map[string]any, now string)
	// pendingSince returns the time since when a run waits for a deployer. It returns false if none does.
	pendingSince(di *lsv1alpha1.DeployItem) (time.Time, bool)
	// enforce applies the timeouts of a run that has started.
	enforce(ctx context.Context, l *Landscaper, di *lsv1alpha1.DeployItem) error
}

var protocols = map[contract.Revision]protocol{contract.RevisionJobID: jobProtocol{}, contract.RevisionAnnotation: annotationProtocol{}}

// protocolOf returns the protocol of a revision and the client that follows it. For an unknown revision, each call of
// the client returns an error.
func protocolOf(revision contract.Revision, c client.Client) (protocol, client.Client) {
	if p, ok := protocols[revision]; ok {
		return p, c
	}
	return jobProtocol{}, refusingClient{err: fmt.Errorf("there is no revision %q", revision)}
}

// refusingClient returns an error from every call that a Landscaper makes.
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
