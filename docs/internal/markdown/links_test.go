// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBrokenLinks(t *testing.T) {
	dir := t.TempDir()
	doc := strings.Join([]string{
		"# The `title`, here", "[a](other.md) [b](gone.md) [c](https://example.org/gone) [d](#the-title-here) [e](#gone)",
		"[f](other.md#two-words) [g](other.md#gone) `[h](code.md)` [i](.)", "```", "[j](code.md)", "```",
	}, "\n")
	for name, text := range map[string]string{"doc.md": doc, "other.md": "## Two words\n```\n# gone\n```\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := FindBrokenLinks(filepath.Join(dir, "doc.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gone.md", "#gone", "other.md#gone"}, got); diff != "" {
		t.Errorf("broken links (-want +got):\n%s", diff)
	}
}

func TestUnlisted(t *testing.T) {
	const doc = "# Title\n\n- [One thing](#one-thing)\n\n## One thing\n\n```sh\n## no heading\n```\n\n## Another\n"
	if diff := cmp.Diff([]string{"Another"}, FindUnlisted(doc)); diff != "" {
		t.Errorf("Unlisted(...): -want, +got:\n%s", diff)
	}
	if got := FindUnlisted("## Without a table\n"); got != nil {
		t.Errorf("Unlisted(no table of contents): got %q", got)
	}
}
