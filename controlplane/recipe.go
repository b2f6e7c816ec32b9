// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	_ "embed"
	"strings"

	"github.com/deployerkit/deployerkit/internal/gobuild"
)

// These are the versions of Kubernetes that FindAssets can build.
const (
	// KubernetesVersion is the version of the control plane with kube-controller-manager.
	KubernetesVersion = "v1.36.3"
	// smallVersion is the version of the control plane without kube-controller-manager. This library requires
	// Kubernetes modules of the same version. Therefore, on a machine that has compiled the library, the build cache
	// already contains more than half of the packages of the control plane.
	smallVersion = "v1.37.2"
)

// These are the names of the binaries.
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

	//go:embed recipe/small/go.mod.tmpl
	smallGoMod string
	//go:embed recipe/small/go.sum.tmpl
	smallGoSum string
	//go:embed recipe/small/main.go.tmpl
	smallMain string
)

// newSmallRecipe builds etcd and kube-apiserver, the same programs that a download contains. The compiler flags are the
// defaults, so that packages that the library also uses need not be compiled again.
func newSmallRecipe() gobuild.Recipe {
	return gobuild.Recipe{
		DisplayName: "etcd and kube-apiserver",
		Version:     smallVersion,
		Notice:      "building etcd and kube-apiserver " + smallVersion + " from Go modules, once: about 3 minutes on 2 cores",
		Module:      "deployerkit.local/controlplane",
		Files:       map[string]string{"go.mod": smallGoMod, "go.sum": smallGoSum, "main.go": smallMain},
		Flags:       buildFlags(smallVersion),
		HostCgo:     true,
		Program:     "controlplane",
		Names:       []string{etcdName, apiServerName},
		Space:       5 << 30,
	}
}

// newFullRecipe builds etcd, kube-apiserver, kube-controller-manager and kubectl.
func newFullRecipe() gobuild.Recipe {
	return gobuild.Recipe{
		DisplayName: "the control plane",
		Version:     KubernetesVersion,
		Notice:      "building Kubernetes " + KubernetesVersion + " from Go modules, once: about 7 minutes on 2 cores",
		Module:      "deployerkit.local/controlplane",
		Files:       map[string]string{"go.mod": recipeGoMod, "go.sum": recipeGoSum, "main.go": recipeMain},
		Flags:       append([]string{"-trimpath"}, buildFlags(KubernetesVersion)...),
		Program:     "controlplane",
		Names:       []string{etcdName, apiServerName, controllerManagerName, kubectlName},
		Space:       5 << 30,
	}
}

// buildFlags returns the build flags for a Kubernetes version. They omit debug information and set the version in the
// binaries.
func buildFlags(version string) []string {
	const pkg = "k8s.io/component-base/version."
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	ldflags := []string{
		"-s -w",
		pkg + "gitVersion=" + version,
		pkg + "gitMajor=" + parts[0],
		pkg + "gitMinor=" + parts[1],
		pkg + "gitTreeState=clean",
		pkg + "gitCommit=unknown",
		pkg + "buildDate=2026-01-01T00:00:00Z",
	}
	return []string{"-buildvcs=false", "-ldflags", strings.Join(ldflags, " -X ")}
}
