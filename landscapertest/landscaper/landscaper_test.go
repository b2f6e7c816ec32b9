// SPDX-License-Identifier: Apache-2.0

package landscaper

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRecipeMatchesItsVersion(t *testing.T) {
	for _, want := range []string{
		"module " + newRecipe().Module + "\n",
		"\tgithub.com/gardener/landscaper " + Version + "\n",
		"\tgithub.com/gardener/landscaper/apis => github.com/gardener/landscaper/apis " + Version + "\n",
		"\tgithub.com/gardener/landscaper/controller-utils => github.com/gardener/landscaper/controller-utils " + Version + "\n",
	} {
		if !strings.Contains(recipeGoMod, want) {
			t.Errorf("the recipe's go.mod has no %q", want)
		}
	}
	if !strings.Contains(recipeGoSum, "github.com/gardener/landscaper "+Version+" h1:") {
		t.Error("the recipe's go.sum does not pin Landscaper")
	}
	for _, name := range newRecipe().Names {
		if !strings.Contains(recipeMain, fmt.Sprintf("%q", name)) {
			t.Errorf("the recipe's program does not know the name %s", name)
		}
	}
}

func TestConfiguration(t *testing.T) {
	if got := (Options{}).buildConfig(); !strings.Contains(got, "pickup: 5m0s") || !strings.Contains(got, "installations: {workers: 10}") {
		t.Errorf("defaults: %s", got)
	}
	if got := (Options{PickupTimeout: 7 * time.Second, Workers: 3}).buildConfig(); !strings.Contains(got, "pickup: 7s") || !strings.Contains(got, "executions: {workers: 3}") {
		t.Errorf("options: %s", got)
	}
}

func TestLineCounter(t *testing.T) {
	var all bytes.Buffer
	c := newLineCounter("Starting workers", &all)
	for _, part := range []string{"a\nStart", "ing workers 1\nother Starting", " workers\n", "Starting workers without an end"} {
		if n, err := c.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", part, n, err)
		}
	}
	if got := len(c.seen); got != 2 {
		t.Errorf("%d lines were seen, want 2", got)
	}
	if !strings.HasSuffix(all.String(), "without an end") {
		t.Errorf("passed on: %q", all.String())
	}
}
