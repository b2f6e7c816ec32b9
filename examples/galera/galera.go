// SPDX-License-Identifier: Apache-2.0

// Package galera is the example of docs/stategraph.md; galera-deployer runs it. Each of its items
// is a Galera cluster: a database with several members, its certificates and configuration, and an
// HAProxy in front of the members.
package galera

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph"
)

//go:embed all:templates
var templates embed.FS

// Galera is the graph. Each field is a component. The tag of a field lists the components that it
// requires.
type Galera struct {
	Service       stategraph.Resource
	Certificates  stategraph.Resource
	Configuration stategraph.Resource
	Database      stategraph.Resource `graph:"requires=service;certificates;configuration"`
	HAProxy       stategraph.Resource `graph:"name=haproxy,requires=database"`
	PublicService stategraph.Resource `graph:"requires=haproxy"`
}

// BuildGraph builds the graph. All items share it, because it contains nothing specific to one item.
func BuildGraph() (*stategraph.Graph, error) {
	services, secrets := stategraph.WithKinds(corev1.SchemeGroupVersion.WithKind("Service")), stategraph.WithKinds(corev1.SchemeGroupVersion.WithKind("Secret"))
	statefulSets := stategraph.WithKinds(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	proxies := stategraph.WithKinds(appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return stategraph.FromStruct(Galera{
		Service:       stategraph.Template(templates, "service.yaml", services),
		Certificates:  stategraph.Template(templates, "certificates.yaml", secrets, stategraph.ReadyWhen(isIssued)),
		Configuration: stategraph.Versioned(newConfigMap),
		Database:      stategraph.Template(templates, "database.yaml", statefulSets),
		HAProxy:       stategraph.Template(templates, "haproxy.yaml", proxies),
		PublicService: stategraph.Template(templates, "public-service.yaml", services),
	})
}

// Config is spec.config of an item.
type Config struct {
	Namespace string            `json:"namespace"` // namespace in the target cluster
	Replicas  int               `json:"replicas"`
	Image     string            `json:"image"`
	Settings  map[string]string `json:"settings,omitempty"` // settings of the database server
}

// newConfigMap returns a ConfigMap that contains the my.cnf of an item. If the content changes,
// the library gives the ConfigMap a new name, and the members restart.
func newConfigMap(ctx context.Context) (*corev1.ConfigMap, error) {
	config, err := stategraph.Config[Config](ctx)
	if err != nil {
		return nil, err // the error names the faulty field
	}
	if config.Replicas%2 == 0 {
		return nil, deployerlib.NewConfigError("spec.config.replicas", "must be odd, is %d", config.Replicas)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, GenerateName: "galera-"}, // the same name in each run, for the same content
		Data:       map[string]string{"my.cnf": config.file()},
	}, nil
}

// file returns the content of my.cnf.
func (c *Config) file() string {
	lines := []string{"[mysqld]", "wsrep_on=ON", "binlog_format=row"}
	for _, key := range slices.Sorted(maps.Keys(c.Settings)) {
		lines = append(lines, fmt.Sprintf("%s=%s", key, c.Settings[key]))
	}
	return strings.Join(lines, "\n") + "\n"
}

// isIssued reports whether the issuer has created the certificates. The components that require the
// certificates wait until then.
func isIssued(secret *corev1.Secret) (stategraph.Readiness, error) {
	there := len(secret.Data[corev1.TLSCertKey]) > 0 && len(secret.Data[corev1.TLSPrivateKeyKey]) > 0
	return stategraph.ReadyIf(there, "the issuer has not answered"), nil
}
