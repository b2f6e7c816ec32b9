// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// Revision describes how specs request and interrupt runs under one revision of the contract.
type Revision struct {
	Name contract.Revision
	// Jobs is true if Landscaper creates a job for each run. If Jobs is false, a change of the item requests a run.
	Jobs bool
	// OperationWrites is the number of additional writes that a run needs if an annotation requested the run.
	OperationWrites int

	interrupt func(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error
}

var revisions = []Revision{
	{Name: contract.RevisionAnnotation, OperationWrites: 1, interrupt: func(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
		return ls.SetOperation(ctx, item, contract.AbortOperation)
	}},
	{Name: contract.RevisionJobID, Jobs: true, interrupt: func(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
		return ls.Interrupt(ctx, item)
	}},
}

// RevisionOf returns the description of a revision. It panics if there is no description for that revision.
func RevisionOf(name contract.Revision) Revision {
	for _, r := range revisions {
		if r.Name == name {
			return r
		}
	}
	panic(fmt.Sprintf("there is no description of revision %q", name))
}

// ToLandscaperOptions returns the options of a simulated Landscaper. In the revision with jobs, the items get an
// annotation with which they do not run before Landscaper creates their first job.
func (r Revision) ToLandscaperOptions() landscapertest.LandscaperOptions {
	return landscapertest.LandscaperOptions{Revision: r.Name, DeployerType: r.Jobs}
}

// Request requests the run for an update or a deletion of an item. It does nothing in a revision in which the update
// or deletion itself requests the run.
func (r Revision) Request(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
	if !r.Jobs {
		return nil
	}
	_, err := ls.Trigger(ctx, item)
	return err
}

// Interrupt requests the end of a run. In the revision with jobs, Landscaper itself ends the run. In the revision
// without jobs, the deployer has to end the run.
func (r Revision) Interrupt(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
	return r.interrupt(ctx, ls, item)
}
