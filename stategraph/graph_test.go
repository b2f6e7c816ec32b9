// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestToMermaid(t *testing.T) {
	g := buildGraph(t, "db: config service", "config", "service")
	mermaid := "flowchart TD\n  n0[\"db\"]\n  n1[\"config\"]\n  n2[\"service\"]\n  n1 --> n0\n  n2 --> n0\n"
	if diff := cmp.Diff(mermaid, g.ToMermaid()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	odd := &Graph{nodes: []node{{component: "a\"<b>\\\n"}}}
	if got := odd.ToMermaid(); !strings.Contains(got, `["a&quot;&lt;b&gt;\ "]`) {
		t.Errorf("Mermaid() = %q, want an escaped name", got)
	}
}

func TestRBAC(t *testing.T) {
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	issuer := WithKinds(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, corev1.SchemeGroupVersion.WithKind("Secret"))
	files := newFiles(map[string]string{"x.yaml": header})
	t.Run("the RBAC rules of all components are merged in a fixed order [Yx5]", func(t *testing.T) {
		g := mustBuild(t, NewBuilder().Add("db", Object(newStatefulSet)).Add("config", Versioned(newUnnamedConfigMap)).Add("cert", Template(files, "x.yaml", issuer)).
			Add("more", Object(newUnnamedConfigMap)).
			Add("ext", External(ExternalSpec{Reconcile: stubResource{}.Reconcile, Rules: []rbacv1.PolicyRule{rule("", []string{"get"}, "nodes")}})))
		want := []rbacv1.PolicyRule{
			rule("", verbs, "configmaps", "secrets"), rule("", []string{"get"}, "nodes"), rule("apps", verbs, "statefulsets"), rule("cert-manager.io", verbs, "certificates"),
		}
		got, err := g.RBAC()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
	t.Run("components whose kinds are unknown are named [Yx5]", func(t *testing.T) {
		g := mustBuild(t, NewBuilder().Add("file", Template(files, "x.yaml")).Add("own", stubResource{}).Add("db", Object(newStatefulSet)).
			Add("ext", External(ExternalSpec{Reconcile: stubResource{}.Reconcile})))
		got, err := g.RBAC()
		want := "component file: the kinds of its objects are not known before a run; set them with WithKinds\n" +
			"component own: its resource is not an RBACProvider, so its rights are not known\n" +
			"component ext: the field Rules of the External is nil; set it to an empty list if no rights are needed"
		if err == nil || err.Error() != want || len(got) != 1 {
			t.Error(got, err)
		}
	})
}

func TestComponentStatuses(t *testing.T) {
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("n%d", i))
	}
	lines = append(lines, "last: "+strings.Join(lines, " "))
	g := buildGraph(t, lines...)
	says := map[string]string{}
	for i := range 200 {
		says[fmt.Sprintf("n%d", i)] = strings.Repeat("why ", 200)
	}
	t.Run("the status of each component has a state, a reason and its blockers, with limits [Yx9]", func(t *testing.T) {
		for name, says := range map[string]map[string]string{"many unready": says, "one unready": {"n5": "starts"}, "all ready": {}} {
			w, _ := runWalk(t, g, 4, says)
			got, omitted := w.toComponentStatuses()
			if len(got) != maxStatusComponents || omitted != 101 {
				t.Errorf("%s: %d components, %d omitted", name, len(got), omitted)
			}
			unready := 0
			for _, c := range got {
				if len([]rune(c.Reason)) > maxReason || len(c.BlockedBy) > maxStatusBlockers {
					t.Errorf("%s: %s has a reason of %d and %d blockers", name, c.Name, len(c.Reason), len(c.BlockedBy))
				}
				if c.State != StateReady {
					unready++
				}
			}
			if want := min(len(says)+min(len(says), 1), maxStatusComponents); unready != want {
				t.Errorf("%s: %d unready ones, want %d", name, unready, want)
			}
			text, err := json.Marshal(ProviderStatus{Components: got, Omitted: omitted})
			if err != nil || len(text) > 100<<10 {
				t.Errorf("%s: %d bytes, %v", name, len(text), err)
			}
		}
	})
	t.Run("the status of a component has a stable JSON encoding [Yx9]", func(t *testing.T) {
		w, _ := runWalk(t, buildGraph(t, "a", "b: a"), 1, map[string]string{"a": "starts"})
		components, _ := w.toComponentStatuses()
		text, err := json.Marshal(ProviderStatus{ObservedGeneration: 2, Components: components, Undo: []UndoEntry{{Name: "x"}}})
		want := `{"observedGeneration":2,"components":[{"name":"a","state":"Progressing","reason":"starts"},` +
			`{"name":"b","state":"Blocked","blockedBy":["a"]}],"undo":[{"n":"x"}],"inventory":{}}`
		if diff := cmp.Diff(want, string(text)); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}
