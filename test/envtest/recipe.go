// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// KubernetesVersion is the version of the control plane that Assets builds or downloads.
const KubernetesVersion = "v1.36.3"

// The names under which the binaries are started.
const (
	etcdName              = "etcd"
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	kubectlName           = "kubectl"
)

// multiCallName is the one binary that the build makes; every other name is a link to it.
const multiCallName = "controlplane"

var (
	//go:embed recipe/go.mod.tmpl
	recipeGoMod string
	//go:embed recipe/go.sum.tmpl
	recipeGoSum string
	//go:embed recipe/main.go.tmpl
	recipeMain string
)

// recipe is the module that the build compiles: file name to content.
func recipe() map[string]string {
	return map[string]string{"go.mod": recipeGoMod, "go.sum": recipeGoSum, "main.go": recipeMain}
}

// recipeKey names the result of the build. Whatever can change the binary is part of it.
func recipeKey() string {
	h := sha256.New()
	for _, part := range append([]string{recipeGoMod, recipeGoSum, recipeMain}, buildFlags()...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	return fmt.Sprintf("%s-%s-%s-%s", KubernetesVersion, runtime.GOOS, runtime.GOARCH, sum[:12])
}

// buildFlags make the build reproducible and small, and give it the version that a release would have.
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

// writeRecipe writes the module of the build into dir, which must exist.
func writeRecipe(dir string) error {
	for name, content := range recipe() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write build recipe: %w", err)
		}
	}
	return nil
}
