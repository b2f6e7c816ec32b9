// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"testing"
)

func TestRecipeFitsItsVersion(t *testing.T) {
	staging := strings.Replace(KubernetesVersion, "v1.", "v0.", 1)
	for _, want := range []string{
		"module " + recipe().Module + "\n",
		"\tk8s.io/kubernetes " + KubernetesVersion + "\n",
		"\tk8s.io/apiserver => k8s.io/apiserver " + staging + "\n",
	} {
		if !strings.Contains(recipeGoMod, want) {
			t.Errorf("the recipe's go.mod has no %q", want)
		}
	}
	for line := range strings.Lines(recipeGoMod) {
		if _, target, ok := strings.Cut(line, " => "); ok && !strings.HasSuffix(target, " "+staging+"\n") {
			t.Errorf("staging module of another version: %s", line)
		}
	}
	if !strings.Contains(recipeGoSum, "k8s.io/kubernetes "+KubernetesVersion+" h1:") {
		t.Error("the recipe's go.sum does not pin Kubernetes")
	}
}

func TestBuildFlagsSetTheVersion(t *testing.T) {
	flags := strings.Join(buildFlags(), " ")
	for _, want := range []string{"-trimpath", "-s -w", "version.gitVersion=v1.36.3 ", "version.gitMajor=1 ", "version.gitMinor=36 "} {
		if !strings.Contains(flags, want) {
			t.Errorf("flags %q have no %q", flags, want)
		}
	}
}
