// SPDX-License-Identifier: Apache-2.0

// Package envtest contains aliases for package controlplane, for tests that import that package under its old path.
// New code should import package controlplane. The subdirectories contain the suites that need a control plane.
package envtest

import (
	"github.com/deployerkit/deployerkit/controlplane"
)

// Types of package controlplane.
type (
	// AssetsOptions is controlplane.AssetsOptions.
	AssetsOptions = controlplane.AssetsOptions
	// ControlPlane is controlplane.ControlPlane.
	ControlPlane = controlplane.ControlPlane
	// Options is controlplane.Options.
	Options = controlplane.Options
)

// Constants of package controlplane.
const (
	KubernetesVersion = controlplane.KubernetesVersion
)

// Functions of package controlplane.
var (
	AddKubelet         = controlplane.AddKubelet
	Assets             = controlplane.Assets
	CRDs               = controlplane.CRDs
	ClassicCRDs        = controlplane.ClassicCRDs
	DefaultControllers = controlplane.DefaultControllers
	Start              = controlplane.Start
)
