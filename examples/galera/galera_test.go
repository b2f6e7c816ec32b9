// SPDX-License-Identifier: Apache-2.0

package galera

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/stategraph"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGraph(t *testing.T) {
	g, err := BuildGraph()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the fields are the components, in the order of the tags [Y3, Y15, Y30]", func(t *testing.T) {
		want := []string{"service", "certificates", "configuration", "database", "haproxy", "public-service"}
		if diff := cmp.Diff(want, g.Order()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("the diagram matches the graph", func(t *testing.T) {
		landscapertest.CompareGolden(t, "testdata/galera.mermaid", g.ToMermaid(), *update)
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

func TestFile(t *testing.T) {
	config := &Config{Settings: map[string]string{"max_connections": "100", "innodb_buffer_pool_size": "1G"}}
	want := "[mysqld]\nwsrep_on=ON\nbinlog_format=row\ninnodb_buffer_pool_size=1G\nmax_connections=100\n"
	for range 20 { // the random order of the map must not matter
		if diff := cmp.Diff(want, config.file()); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

func TestIssued(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{}}
	for _, step := range []struct {
		key  string
		want stategraph.Readiness
	}{
		{"ca.crt", stategraph.NotReady("the issuer has not answered")},
		{corev1.TLSCertKey, stategraph.NotReady("the issuer has not answered")},
		{corev1.TLSPrivateKeyKey, stategraph.Ready()},
	} {
		secret.Data[step.key] = []byte("pem")
		if got, err := isIssued(secret); err != nil || got != step.want {
			t.Errorf("with %s: %+v, %v, want %+v", step.key, got, err, step.want)
		}
	}
}
