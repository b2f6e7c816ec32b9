// SPDX-License-Identifier: Apache-2.0

// Package lib replaces Landscaper's own deployer library, which cannot be imported. It declares the same names, so that
// code for Landscaper's library compiles. The functions do nothing.
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

// ErrDeclared is the error of all functions of this package. The functions exist only so that code that calls them
// compiles.
var ErrDeclared = errors.New("not implemented: this package contains only declarations")

// DeployerArgs are the arguments of Add.
type DeployerArgs struct {
	Name, Version, Identity string
	Type                    lsv1alpha1.DeployItemType
	Deployer                any
	TargetSelectors         []lsv1alpha1.TargetSelector
}

// Add is a stub.
func Add(logr.Logger, manager.Manager, manager.Manager, DeployerArgs) error { return ErrDeclared }

// CreateOrUpdateExport is a stub.
func CreateOrUpdateExport(context.Context, client.Client, *lsv1alpha1.DeployItem, any) error {
	return ErrDeclared
}

// SetProviderStatus is a stub.
func SetProviderStatus(*lsv1alpha1.DeployItem, runtime.Object, *runtime.Scheme) error {
	return ErrDeclared
}

// GetTargetClient is a stub.
func GetTargetClient(context.Context, *lsv1alpha1.ResolvedTarget) (client.Client, error) {
	return nil, ErrDeclared
}
