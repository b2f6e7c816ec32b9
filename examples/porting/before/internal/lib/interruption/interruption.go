// SPDX-License-Identifier: Apache-2.0

// Package interruption declares how deployers ask Landscaper's library whether their job was interrupted.
package interruption

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/examples/porting/before/internal/lib"
)

// Checker checks the item.
type Checker struct{}

// NewStandardInterruptionChecker is only a declaration.
func NewStandardInterruptionChecker(*lsv1alpha1.DeployItem, client.Client) *Checker {
	return &Checker{}
}

// Check is only a declaration.
func (*Checker) Check(context.Context) error { return lib.ErrDeclared }
