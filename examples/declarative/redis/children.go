// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
)

const port = 6379

// readConfig decodes and validates the configuration.
func readConfig(req *declarative.SyncRequest) (*Config, error) {
	config, err := declarative.Config[Config](req)
	if err != nil {
		return nil, err
	}
	config.Memory = cmp.Or(config.Memory, "256Mi")
	if config.Version == "" {
		return nil, deployerlib.NewConfigError("spec.config.version", "required")
	}
	if _, err := resource.ParseQuantity(config.Memory); err != nil {
		return nil, deployerlib.NewConfigError("spec.config.memory", "%q is not a quantity", config.Memory)
	}
	return config, nil
}

// service returns the Service for the Deployment.
func service(name string) *corev1.Service {
	service := &corev1.Service{Spec: corev1.ServiceSpec{Selector: labels(name), Ports: []corev1.ServicePort{{Port: port}}}}
	service.Name = name
	return service
}

// deployment returns a Deployment that runs one server. It omits the fields that the API server and other field
// managers should set.
func (c *Config) deployment(name string) *appsv1.Deployment {
	server := corev1.Container{
		Name: "redis", Image: "redis:" + c.Version, Args: []string{"--requirepass", "$(PASSWORD)"},
		Ports: []corev1.ContainerPort{{ContainerPort: port}},
		Env: []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "password",
		}}}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(c.Memory)}},
	}
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)),
		Selector: &metav1.LabelSelector{MatchLabels: labels(name)},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels(name)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{server}},
		},
	}}
	deployment.Name = name
	return deployment
}

func labels(name string) map[string]string { return map[string]string{"app": name} }
