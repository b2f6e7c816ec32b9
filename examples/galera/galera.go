// SPDX-License-Identifier: Apache-2.0

// Package galera is a state graph. Each of its items is a Galera cluster: a database of several members with certificates
// and a configuration, and HAProxy in front of it. It is the example of docs/stategraph.md; galera-deployer runs it.
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

// Galera is the graph. The fields are its components, the tags say what each of them requires.
type Galera struct {
	Service       stategraph.Resource
	Certificates  stategraph.Resource
	Configuration stategraph.Resource
	Database      stategraph.Resource `graph:"requires=service;certificates;configuration"`
	HAProxy       stategraph.Resource `graph:"name=haproxy,requires=database"`
	PublicService stategraph.Resource `graph:"requires=haproxy"`
}

// Graph builds it. Nothing in it is about an item: one graph serves all of them.
func Graph() (*stategraph.Graph, error) {
	services, secrets := stategraph.WithKinds(corev1.SchemeGroupVersion.WithKind("Service")), stategraph.WithKinds(corev1.SchemeGroupVersion.WithKind("Secret"))
	statefulSets := stategraph.WithKinds(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	proxies := stategraph.WithKinds(appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return stategraph.FromStruct(Galera{
		Service:       stategraph.Template(templates, "service.yaml", services),
		Certificates:  stategraph.Template(templates, "certificates.yaml", secrets, stategraph.ReadyWhen(issued)),
		Configuration: stategraph.Versioned(configuration),
		Database:      stategraph.Template(templates, "database.yaml", statefulSets),
		HAProxy:       stategraph.Template(templates, "haproxy.yaml", proxies),
		PublicService: stategraph.Template(templates, "public-service.yaml", services),
	})
}

// Config is spec.config of an item.
type Config struct {
	Namespace string            `json:"namespace"` // in the target
	Replicas  int               `json:"replicas"`
	Image     string            `json:"image"`
	Settings  map[string]string `json:"settings,omitempty"` // of the server
}

// configuration returns the my.cnf of an item. Different content results in another ConfigMap, and the members are
// restarted with it.
func configuration(ctx context.Context) (*corev1.ConfigMap, error) {
	config, err := stategraph.Config[Config](ctx)
	if err != nil {
		return nil, err // names the faulty field
	}
	if config.Replicas%2 == 0 {
		return nil, deployerlib.ConfigError("spec.config.replicas", "must be odd, is %d", config.Replicas)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, GenerateName: "galera-"}, // the same in each run
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

// issued reports whether the issuer has answered. Until then, nothing that requires the certificates is changed.
func issued(secret *corev1.Secret) (stategraph.Readiness, error) {
	there := len(secret.Data[corev1.TLSCertKey]) > 0 && len(secret.Data[corev1.TLSPrivateKeyKey]) > 0
	return stategraph.ReadyIf(there, "the issuer has not answered"), nil
}
