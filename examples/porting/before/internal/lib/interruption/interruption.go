// SPDX-License-Identifier: Apache-2.0

// Package interruption declares the functions with which a deployer asks Landscaper's library whether a job was
// interrupted.
package interruption

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/examples/porting/before/internal/lib"
)

// Checker checks whether the job of an item was interrupted.
type Checker struct{}

// NewStandardInterruptionChecker is a stub. It returns a Checker that cannot check anything.
func NewStandardInterruptionChecker(*lsv1alpha1.DeployItem, client.Client) *Checker {
	return &Checker{}
}

// Check is a stub. It always returns an error.
func (*Checker) Check(context.Context) error { return lib.ErrDeclared }
