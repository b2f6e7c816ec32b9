// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/deployerkit/deployerkit/internal/gobuild"
)

func TestRecipesMatchTheirVersions(t *testing.T) {
	for version, r := range map[string]gobuild.Recipe{KubernetesVersion: newFullRecipe(), smallVersion: newSmallRecipe()} {
		staging := strings.Replace(version, "v1.", "v0.", 1)
		for _, want := range []string{
			"module " + r.Module + "\n",
			"\tk8s.io/kubernetes " + version + "\n",
			"\tk8s.io/apiserver => k8s.io/apiserver " + staging + "\n",
		} {
			if !strings.Contains(r.Files["go.mod"], want) {
				t.Errorf("the go.mod of %s has no %q", version, want)
			}
		}
		for line := range strings.Lines(r.Files["go.mod"]) {
			if _, target, ok := strings.Cut(line, " => "); ok && !strings.HasSuffix(target, " "+staging+"\n") {
				t.Errorf("%s has a staging module of another version: %s", version, line)
			}
		}
		if !strings.Contains(r.Files["go.sum"], "k8s.io/kubernetes "+version+" h1:") {
			t.Errorf("the go.sum of %s does not pin Kubernetes", version)
		}
	}
}

// TestSmallRecipeHasTheVersionsOfTheLibrary checks that the small control plane and the library require the same module
// versions. Otherwise, the build of the small control plane could reuse almost no packages from the build cache.
func TestSmallRecipeHasTheVersionsOfTheLibrary(t *testing.T) {
	versions := func(name string, content []byte) map[string]string {
		t.Helper()
		f, err := modfile.Parse(name, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, r := range f.Require {
			out[r.Mod.Path] = r.Mod.Version
		}
		for _, r := range f.Replace {
			out[r.Old.Path] = r.New.Version
		}
		return out
	}
	library, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	ours, common := versions("go.mod", library), 0
	for path, version := range versions("small/go.mod.tmpl", []byte(smallGoMod)) {
		if want, ok := ours[path]; ok {
			common++
			if version != want {
				t.Errorf("%s %s: the library has %s; change it in recipe/small/go.mod.tmpl and tidy that", path, version, want)
			}
		}
	}
	if common < 30 {
		t.Errorf("got %d common modules", common)
	}
}

func TestFlagsSetTheVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		recipe gobuild.Recipe
		want   []string
	}{
		"Full":  {newFullRecipe(), []string{"-trimpath", "-s -w", "version.gitVersion=v1.36.3 ", "version.gitMajor=1 ", "version.gitMinor=36 "}},
		"Small": {newSmallRecipe(), []string{"-s -w", "version.gitVersion=v1.37.2 ", "version.gitMajor=1 ", "version.gitMinor=37 "}},
	} {
		flags := strings.Join(tc.recipe.Flags, " ")
		for _, want := range tc.want {
			if !strings.Contains(flags, want) {
				t.Errorf("%s: flags %q have no %q", name, flags, want)
			}
		}
	}
}
