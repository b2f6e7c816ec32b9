// SPDX-License-Identifier: Apache-2.0

package phrases

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInGuide(t *testing.T) {
	text := "# Shall\n\nIt tells\nwhether `nobody` does.\n\n```go\n// shall\n```\n\n> nobody said\n\nThey say \"for ever\", for  ever.\n"
	want := []Hit{{1, "Shall"}, {3, "tells whether"}, {12, "for ever"}}
	if diff := cmp.Diff(want, FindInGuide(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInGo(t *testing.T) {
	text := "// Package x tells\n// whether.\n\n// Nobody here.\npackage x\n\n/* two\nlines of\nours */\nvar a = \"it shall\" // \"somebody\" and `whoever` are quoted\n\nvar nobody = `\nnil: none`\n"
	want := []Hit{{1, "tells whether"}, {4, "Nobody"}, {8, "of ours"}, {10, "shall"}, {13, "nil:"}}
	if diff := cmp.Diff(want, FindInGo([]byte(text), true)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInGoWithoutLiterals(t *testing.T) {
	want := []Hit{{3, "nobody"}}
	if diff := cmp.Diff(want, FindInGo([]byte("package x\n\nvar a = \"it shall\" // nobody\n"), false)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
