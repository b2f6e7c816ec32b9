// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/patch"
)

// budgets are the rows of the guide's table, and how each is measured.
var budgets = []struct {
	row     string
	note    func(*patch.Patch)
	typed   bool
	prepare func(*server)
}{
	{row: "nothing, as the object was seen last", note: func(p *patch.Patch) { p.Labels().Set("old", "1"); p.Annotations().Set("nope", nil) }},
	{row: "anything but the status", note: func(p *patch.Patch) { p.Labels().Set("a", "1"); p.Spec().Set("text", "x") }},
	{row: "only the status", note: func(p *patch.Patch) { p.Status().Set("state", "x") }},
	{row: "both", note: func(p *patch.Patch) { p.Labels().Set("a", "1"); p.Append(setState) }},
	{row: "both, with functions, of a typed object", typed: true, note: func(p *patch.Patch) { p.Labels().Set("a", "1"); p.Append(setState) }},
	{row: "nothing, with functions, of a typed object", typed: true, note: func(p *patch.Patch) { p.Append(setLabel("old", "1")) }},
	{row: "the main resource, after one conflict", note: func(p *patch.Patch) { p.Append(setLabel("a", "1")) }, prepare: (*server).bump},
	{
		row: "both, where only updates are allowed", note: func(p *patch.Patch) { p.Labels().Set("a", "1"); p.Append(setState) },
		prepare: func(s *server) { s.refuse = forbid("patch") },
	},
}

func setState(body map[string]any) error {
	within(body, "status")["state"] = "x"
	return nil
}

func TestBudgets(t *testing.T) {
	guide, err := os.ReadFile("../docs/patching.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, budget := range budgets {
		t.Run(budget.row+": the calls are those of the guide [K7, F15, F59]", func(t *testing.T) {
			cells := []string{budget.row}
			for _, apart := range []bool{true, false} {
				s, p := newServer(t, halfKnown), &patch.Patch{}
				s.apart = apart
				obj := s.raw()
				if budget.typed {
					obj = s.typed()
				}
				budget.note(p)
				if budget.prepare != nil {
					budget.prepare(s)
				}
				if strings.Contains(budget.row, "updates") { // the first refusal is remembered
					warm := &patch.Patch{}
					warm.Labels().Set("warm", "1")
					warm.Status().Set("warm", "1")
					apply(t, warm, s, obj, patch.StatusSubresource(apart))
				}
				s.requests = nil
				apply(t, p, s, obj, patch.StatusSubresource(apart))
				cells = append(cells, spell(s))
			}
			if row := "| " + strings.Join(cells, " | ") + " |"; !strings.Contains(string(guide), "\n"+row+"\n") {
				t.Errorf("the guide has no row\n%s", row)
			}
		})
	}
}

// spell counts the requests in words.
func spell(s *server) string {
	reads, writes := 0, 0
	for _, verb := range verbs(s) {
		if verb == "get" {
			reads++
		} else {
			writes++
		}
	}
	switch {
	case reads+writes == 0:
		return "no call"
	case reads == 0:
		return count(writes, "write")
	case writes == 0:
		return count(reads, "read")
	}
	return count(reads, "read") + ", " + count(writes, "write")
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}
