// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/landscapertest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGraph(t *testing.T) {
	g, err := BuildGraph()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the order follows from the references between components [F41]", func(t *testing.T) {
		want := []string{"issuer", "certificate", "configuration", "database", "service", "users"}
		if diff := cmp.Diff(want, g.Order()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("the diagram matches the graph", func(t *testing.T) {
		landscapertest.CompareGolden(t, "testdata/postgres.mermaid", g.ToMermaid(), *update)
	})
	t.Run("the RBAC rules in the target match the graph [Yx5]", func(t *testing.T) {
		rules, err := g.RBAC()
		if err != nil {
			t.Fatal(err)
		}
		role, err := yaml.Marshal(struct {
			Rules []rbacv1.PolicyRule `json:"rules"`
		}{rules})
		if err != nil {
			t.Fatal(err)
		}
		landscapertest.CompareGolden(t, "testdata/rbac.yaml", string(role), *update)
	})
}

func TestConfig(t *testing.T) {
	for name, test := range map[string]struct {
		users []string
		want  string
	}{
		"no users":        {nil, ""},
		"users":           {[]string{"orders", "read_only"}, ""},
		"an invalid user": {[]string{"orders", "O'Hara"}, "spec.config.users[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Config{Users: test.users}).validate()
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
