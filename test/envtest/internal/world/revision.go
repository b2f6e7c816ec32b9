// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// Revision is the part of the suites that differs between the revisions of the contract.
type Revision struct {
	Name contract.Revision
	// Jobs is set if Landscaper hands out a job for each run. Otherwise a change of the item requests a run.
	Jobs bool
	// OperationWrites is the number of additional writes for a run that an annotation requests.
	OperationWrites int

	interrupt func(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error
}

var revisions = []Revision{
	{Name: contract.RevisionAnnotation, OperationWrites: 1, interrupt: func(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
		return ls.Operate(ctx, item, contract.AbortOperation)
	}},
	{Name: contract.RevisionJobID, Jobs: true, interrupt: func(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
		return ls.Interrupt(ctx, item)
	}},
}

// RevisionOf returns the entry of a revision. It panics if there is none, because a new revision needs one.
func RevisionOf(name contract.Revision) Revision {
	for _, r := range revisions {
		if r.Name == name {
			return r
		}
	}
	panic(fmt.Sprintf("the suites do not know revision %q", name))
}

// Landscaper returns the options of a Landscaper. It marks its items if they would otherwise start before they get a
// job.
func (r Revision) Landscaper() landscapertest.LandscaperOptions {
	return landscapertest.LandscaperOptions{Revision: r.Name, DeployerType: r.Jobs}
}

// Request requests the run that an update or a deletion needs, unless the update or deletion itself requests it.
func (r Revision) Request(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
	if !r.Jobs {
		return nil
	}
	_, err := ls.Trigger(ctx, item)
	return err
}

// Interrupt requests the end of a run. With jobs Landscaper ends it itself; without jobs the deployer has to.
func (r Revision) Interrupt(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
	return r.interrupt(ctx, ls, item)
}
