// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/patch"
)

// budgets contains the rows of the table in the guide, each with a patch for which the requests are counted.
var budgets = []struct {
	row     string
	note    func(*patch.Patch)
	typed   bool
	prepare func(*server)
}{
	{row: "nothing, compared with the object that you pass", note: func(p *patch.Patch) { p.Labels().Set("old", "1"); p.Annotations().Set("nope", nil) }},
	{row: "anything but the status", note: func(p *patch.Patch) { p.Labels().Set("a", "1"); p.Spec().Set("text", "x") }},
	{row: "only the status", note: func(p *patch.Patch) { p.Status().Set("state", "x") }},
	{row: "both", note: func(p *patch.Patch) { p.Labels().Set("a", "1"); p.Append(setState) }},
	{row: "both, with functions, of a typed object", typed: true, note: func(p *patch.Patch) { p.Labels().Set("a", "1"); p.Append(setState) }},
	{row: "nothing, with functions, of a typed object", typed: true, note: func(p *patch.Patch) { p.Append(setLabel("old", "1")) }},
	{row: "the main resource, after one conflict", note: func(p *patch.Patch) { p.Append(setLabel("a", "1")) }, prepare: (*server).incrementVersion},
	{
		row: "both, where only updates are allowed", note: func(p *patch.Patch) { p.Labels().Set("a", "1"); p.Append(setState) },
		prepare: func(s *server) { s.refuse = forbid("patch") },
	},
}

func setState(body map[string]any) error {
	getOrCreateObject(body, "status")["state"] = "x"
	return nil
}

func TestBudgets(t *testing.T) {
	guide, err := os.ReadFile("../docs/patching.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, budget := range budgets {
		t.Run(budget.row+": the number of requests is that of the guide [K7, F15, F59]", func(t *testing.T) {
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
				if strings.Contains(budget.row, "updates") { // the first patch is refused, and Apply remembers the refusal
					warm := &patch.Patch{}
					warm.Labels().Set("warm", "1")
					warm.Status().Set("warm", "1")
					apply(t, warm, s, obj, patch.WithStatusSubresource(apart))
				}
				s.requests = nil
				apply(t, p, s, obj, patch.WithStatusSubresource(apart))
				cells = append(cells, formatRequests(s))
			}
			if row := "| " + strings.Join(cells, " | ") + " |"; !strings.Contains(string(guide), "\n"+row+"\n") {
				t.Errorf("the guide has no row\n%s", row)
			}
		})
	}
}

// formatRequests returns the number of reads and writes as text.
func formatRequests(s *server) string {
	reads, writes := 0, 0
	for _, verb := range listVerbs(s) {
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
		return formatCount(writes, "write")
	case writes == 0:
		return formatCount(reads, "read")
	}
	return formatCount(reads, "read") + ", " + formatCount(writes, "write")
}

func formatCount(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// forbid returns a function that refuses requests with the given verbs. The function returns the error with which an
// API server reports missing permissions.
func forbid(verbs ...string) func(string) error {
	return func(request string) error {
		verb, _, _ := strings.Cut(request, " ")
		if slices.Contains(verbs, verb) {
			return apierrors.NewForbidden(schema.GroupResource{Group: "example.org", Resource: "gadgets"}, "web",
				fmt.Errorf(`User "u" cannot %s resource "gadgets" in API group "example.org" in the namespace "default"`, verb))
		}
		return nil
	}
}

// listVerbs returns the verb and the subresource of each request.
func listVerbs(s *server) []string {
	out := []string{}
	for _, request := range s.requests {
		words := strings.Fields(request)
		if strings.Contains(request, " status ") {
			words[0] += "/status"
		}
		out = append(out, words[0])
	}
	s.requests = nil
	return out
}

func TestApplyWithoutPatchPermission(t *testing.T) {
	both := map[string]func(*patch.Patch){
		"merge changes": func(p *patch.Patch) { p.Spec().Set("text", "x"); p.Status().Set("state", "y") },
		"functions": func(p *patch.Patch) {
			p.Append(func(body map[string]any) error {
				getOrCreateObject(body, "spec")["text"], getOrCreateObject(body, "status")["state"] = "x", "y"
				return nil
			})
		},
	}
	for name, note := range both {
		t.Run(name+" are sent as updates of the raw object [F59]", func(t *testing.T) {
			s, p := newServer(t, halfKnown), &patch.Patch{}
			s.refuse = forbid("patch")
			note(p)
			want := applyTo(t, p, s.body)
			apply(t, p, s, s.typed(), patch.WithStatusSubresource(true))
			for _, part := range []string{"spec", "status"} {
				if diff := cmp.Diff(normalizeNumbers(t, want[part]), normalizeNumbers(t, s.body[part])); diff != "" {
					t.Errorf("%s (-want +stored):\n%s", part, diff)
				}
			}
			s.requests = nil
			s.applyChange(func(body map[string]any) { getOrCreateObject(body, "spec")["text"] = "other" })
			obj := s.raw()
			result := apply(t, p, s, obj, patch.WithStatusSubresource(true))
			if diff := cmp.Diff([]string{"get", "update"}, listVerbs(s)); diff != "" {
				t.Errorf("a later patch costs one read more, and no attempt to patch (-want +got):\n%s", diff)
			}
			if result.Reads != 1 || obj.GetResourceVersion() != getOrCreateObject(s.body, "metadata")["resourceVersion"] {
				t.Errorf("result = %+v, want one read and the stored resourceVersion", result)
			}
		})
		t.Run(name+" are sent again after conflicts [F59]", func(t *testing.T) {
			s, p := newServer(t, halfKnown), &patch.Patch{}
			note(p)
			once := true
			s.refuse = func(request string) error {
				if request == "update " && once {
					once = false
					s.applyChange(func(body map[string]any) { getOrCreateObject(body, "spec")["theirs"] = "1" })
				}
				return forbid("patch")(request)
			}
			apply(t, p, s, s.raw(), patch.WithStatusSubresource(true))
			if spec := getOrCreateObject(s.body, "spec"); spec["theirs"] != "1" || spec["text"] != "x" || getOrCreateObject(s.body, "status")["state"] != "y" {
				t.Errorf("stored %v", s.body)
			}
		})
		t.Run(name+" are not applied to another object with the same name [F59, F20]", func(t *testing.T) {
			s, p := newServer(t, halfKnown), &patch.Patch{}
			s.refuse = forbid("patch")
			note(p)
			obj := s.raw()
			s.applyChange(func(body map[string]any) { getOrCreateObject(body, "metadata")["uid"] = "second" })
			if result := apply(t, p, s, obj, patch.WithStatusSubresource(true)); !result.Gone || getOrCreateObject(s.body, "spec")["text"] != "" {
				t.Errorf("result %+v, stored %v", result, s.body)
			}
		})
	}
	t.Run("a locked patch is sent as a patch [F59]", func(t *testing.T) {
		s, p := newServer(t, halfKnown), &patch.Patch{}
		s.refuse = forbid("patch")
		obj := s.raw()
		s.incrementVersion()
		p.Labels().Set("a", "1")
		if _, err := p.Apply(t.Context(), s, obj, patch.WithOptimisticLock()); !apierrors.IsConflict(err) {
			t.Errorf("Apply() = %v, want a conflict", err)
		}
	})
	t.Run("a missing permission to patch and update is an error that names the resource, until it is granted [F59]", func(t *testing.T) {
		s, p := newServer(t, halfKnown), &patch.Patch{}
		s.refuse = forbid("patch", "update")
		p.Status().Set("state", "x")
		_, err := p.Apply(t.Context(), s, s.raw(), patch.WithStatusSubresource(true))
		if rights, ok := errors.AsType[*patch.RightsError](err); !ok || rights.Resource != "Gadget/status" || !apierrors.IsForbidden(err) {
			t.Errorf("Apply() = %v, want a RightsError", err)
		}
		s.refuse = forbid("update")
		apply(t, p, s, s.raw(), patch.WithStatusSubresource(true))
		s.refuse = forbid("patch")
		p.Status().Set("state", "y")
		apply(t, p, s, s.raw(), patch.WithStatusSubresource(true))
		s.refuse = forbid("update")
		p.Status().Set("state", "z")
		apply(t, p, s, s.raw(), patch.WithStatusSubresource(true))
		if got := getOrCreateObject(s.body, "status")["state"]; got != "z" {
			t.Errorf("state %v", got)
		}
	})
	t.Run("a patch that an admission plugin denies is not sent as an update [F59]", func(t *testing.T) {
		s, p := newServer(t, halfKnown), &patch.Patch{}
		s.refuse = func(string) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "gadgets"}, "web", errors.New("admission webhook denied the request"))
		}
		p.Labels().Set("a", "1")
		if _, err := p.Apply(t.Context(), s, s.raw()); !apierrors.IsForbidden(err) {
			t.Errorf("Apply() = %v, want forbidden", err)
		}
		if diff := cmp.Diff([]string{"patch"}, listVerbs(s)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}
