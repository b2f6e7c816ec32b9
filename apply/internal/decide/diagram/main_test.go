// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGuide(t *testing.T) {
	t.Run("the guide shows the states of the machines", func(t *testing.T) {
		doc, err := os.ReadFile("../../../../docs/architecture.md")
		if err != nil {
			t.Fatal(err)
		}
		want, err := render(doc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(doc)); diff != "" {
			t.Errorf("docs/architecture.md is stale, run go generate ./apply/internal/decide: -want +got:\n%s", diff)
		}
	})
}
