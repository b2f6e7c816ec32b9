// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	_ "embed"
	"strings"

	"github.com/deployerkit/deployerkit/internal/gobuild"
)

// KubernetesVersion is the version of the control plane that Assets builds or downloads.
const KubernetesVersion = "v1.36.3"

// The names of the binaries.
const (
	etcdName              = "etcd"
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	kubectlName           = "kubectl"
)

var (
	//go:embed recipe/go.mod.tmpl
	recipeGoMod string
	//go:embed recipe/go.sum.tmpl
	recipeGoSum string
	//go:embed recipe/main.go.tmpl
	recipeMain string
)

// recipe returns the module that the build compiles.
func recipe() gobuild.Recipe {
	return gobuild.Recipe{
		What:    "the control plane",
		Version: KubernetesVersion,
		Notice:  "building Kubernetes " + KubernetesVersion + " from Go modules, once: about 8 minutes on 2 cores",
		Module:  "deployerkit.local/controlplane",
		Files:   map[string]string{"go.mod": recipeGoMod, "go.sum": recipeGoSum, "main.go": recipeMain},
		Flags:   buildFlags(),
		Program: "controlplane",
		Names:   []string{etcdName, apiServerName, controllerManagerName, kubectlName},
		Space:   5 << 30,
	}
}

// buildFlags returns flags that make the build reproducible and small, and that set the version of a release.
func buildFlags() []string {
	const pkg = "k8s.io/component-base/version."
	parts := strings.SplitN(strings.TrimPrefix(KubernetesVersion, "v"), ".", 3)
	ldflags := []string{
		"-s -w",
		pkg + "gitVersion=" + KubernetesVersion,
		pkg + "gitMajor=" + parts[0],
		pkg + "gitMinor=" + parts[1],
		pkg + "gitTreeState=clean",
		pkg + "gitCommit=unknown",
		pkg + "buildDate=2026-01-01T00:00:00Z",
	}
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", strings.Join(ldflags, " -X ")}
}
