// SPDX-License-Identifier: Apache-2.0

// Package lib has declarations like those of Landscaper's own deployer library, which cannot be imported, so that code
// for that library compiles. The functions do nothing.
package lib

import (
	"context"
	"errors"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// ErrDeclared is returned by all functions that exist only to be compiled.
var ErrDeclared = errors.New("only declared")

// DeployerArgs are the arguments of Add.
type DeployerArgs struct {
	Name, Version, Identity string
	Type                    lsv1alpha1.DeployItemType
	Deployer                any
	TargetSelectors         []lsv1alpha1.TargetSelector
}

// Add is only a declaration.
func Add(logr.Logger, manager.Manager, manager.Manager, DeployerArgs) error { return ErrDeclared }

// CreateOrUpdateExport is only a declaration.
func CreateOrUpdateExport(context.Context, client.Client, *lsv1alpha1.DeployItem, any) error {
	return ErrDeclared
}

// SetProviderStatus is only a declaration.
func SetProviderStatus(*lsv1alpha1.DeployItem, runtime.Object, *runtime.Scheme) error {
	return ErrDeclared
}

// GetTargetClient is only a declaration.
func GetTargetClient(context.Context, *lsv1alpha1.ResolvedTarget) (client.Client, error) {
	return nil, ErrDeclared
}
