// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// Revision is what the suites do and expect differently in a revision of the contract.
type Revision struct {
	Name contract.Revision
	// Jobs is set if Landscaper hands out a job for each run. Otherwise a change of the item asks for one.
	Jobs bool
	// OperationWrites is how many writes more the deployer needs for a run that an annotation asked for.
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

// RevisionOf returns the row of a revision. It panics if there is none: a new revision needs one.
func RevisionOf(name contract.Revision) Revision {
	for _, r := range revisions {
		if r.Name == name {
			return r
		}
	}
	panic(fmt.Sprintf("the suites do not know revision %q", name))
}

// Landscaper returns the options of a Landscaper. It marks its items where they would start before they get their job.
func (r Revision) Landscaper() landscapertest.LandscaperOptions {
	return landscapertest.LandscaperOptions{Revision: r.Name, DeployerType: r.Jobs}
}

// Request asks for the run that an update or a deletion needs, unless that itself asked for it.
func (r Revision) Request(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
	if !r.Jobs {
		return nil
	}
	_, err := ls.Trigger(ctx, item)
	return err
}

// Interrupt asks for the end of a run: with jobs Landscaper ends it itself, without them the deployer has to.
func (r Revision) Interrupt(ctx context.Context, ls *landscapertest.Landscaper, item types.NamespacedName) error {
	return r.interrupt(ctx, ls, item)
}
