// SPDX-License-Identifier: Apache-2.0

// Package postgres is an example of a state graph. Each of its items is a PostgreSQL server. An external issuer
// provides the certificate of the server, and a Job creates the users. Each item exports the address of its server for
// other items.
package postgres

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph"
)

//go:embed all:templates
var templates embed.FS

// Config is spec.config of an item.
type Config struct {
	Namespace string            `json:"namespace"` // namespace in the target cluster
	Image     string            `json:"image"`
	Issuer    string            `json:"issuer"`             // name of a ConfigMap that the issuer creates in the namespace
	Users     []string          `json:"users,omitempty"`    // in addition to the user postgres
	Settings  map[string]string `json:"settings,omitempty"` // settings of the database server
}

// validate checks the values that the decoder does not check.
func (c *Config) validate() error {
	for i, user := range c.Users {
		if user == "" || strings.Trim(user, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return deployerlib.NewConfigError(fmt.Sprintf("spec.config.users[%d]", i), "must consist of lower case letters and underscores")
		}
	}
	return nil
}

// The Go functions below read these components. stategraph.Uses declares that a component requires them.
var (
	service  = stategraph.Require[*corev1.Service]("service")
	database = stategraph.Require[*appsv1.StatefulSet]("database")
)

// BuildGraph builds the graph. A component automatically requires the components to which its template refers.
// Therefore, only the components "service" and "users" declare requirements.
func BuildGraph() (*stategraph.Graph, error) {
	secrets := stategraph.WithKinds(corev1.SchemeGroupVersion.WithKind("Secret"))
	configMaps := stategraph.WithKinds(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	statefulSets := stategraph.WithKinds(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	services := stategraph.WithKinds(corev1.SchemeGroupVersion.WithKind("Service"))
	issuer := stategraph.ReferenceSpec{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Name: stategraph.WithConfig(getIssuerKey)}
	return stategraph.NewBuilderOf((*Config).validate).
		Add("issuer", stategraph.Reference(issuer, stategraph.WithOutput("class", ".data.class"))).
		Add("certificate", stategraph.Template(templates, "certificate.yaml", secrets, stategraph.ReadyWhen(isIssued))).
		Add("configuration", stategraph.Template(templates, "configuration.yaml", configMaps)).
		Add("database", stategraph.Template(templates, "database.yaml", statefulSets)).
		Add("service", stategraph.Template(templates, "service.yaml", services, stategraph.WithOutput("port", ".spec.ports[0].port")), "database").
		Add("users", stategraph.Object(stategraph.WithConfig(newUsersJob), stategraph.Uses(service, database), stategraph.WithStrategy(apply.StrategyRecreate))).
		AddExport("host", "service", `{{ .NameOf "service" }}.{{ .Config.namespace }}.svc`).
		AddExport("port", "service", "port").
		AddExport("secretRef", "certificate", ".metadata.name").
		Build()
}

// getIssuerKey returns the name of the issuer of an item.
func getIssuerKey(ctx stategraph.Context[Config]) (types.NamespacedName, error) {
	return types.NamespacedName{Namespace: ctx.Config.Namespace, Name: ctx.Config.Issuer}, nil
}

// isIssued reports whether the issuer has created the certificate.
func isIssued(secret *corev1.Secret) (stategraph.Readiness, error) {
	there := len(secret.Data[corev1.TLSCertKey]) > 0 && len(secret.Data[corev1.TLSPrivateKeyKey]) > 0
	return stategraph.ReadyIf(there, "the issuer has not answered"), nil
}

// newUsersJob returns the Job that creates the users. The template of a Job is immutable, so a change of the users
// recreates the Job.
func newUsersJob(ctx stategraph.Context[Config]) (*batchv1.Job, error) {
	host, err := service.Name(ctx)
	if err != nil {
		return nil, err
	}
	server, err := database.Name(ctx)
	if err != nil {
		return nil, err
	}
	names, err := json.Marshal(slices.Sorted(slices.Values(ctx.Config.Users)))
	if err != nil {
		return nil, err
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: ctx.Config.Namespace, Name: server + "-users"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "users", Image: ctx.Config.Image, Command: []string{"/bin/create-users"},
				Env: []corev1.EnvVar{{Name: "PGHOST", Value: host}, {Name: "NEW_USERS", Value: string(names)}},
			}},
		}}},
	}, nil
}
