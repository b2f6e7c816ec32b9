// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/rand"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/targets"
)

// Type is the type of the deploy items.
const Type = "example.org/redis"

// Options lists the kinds of the objects that the function Sync returns.
var Options = declarative.Options{
	Children: []declarative.ChildKind{
		{APIVersion: "v1", Kind: "Secret"},
		{APIVersion: "v1", Kind: "Service"},
		{APIVersion: "apps/v1", Kind: "Deployment"},
	},
	Labels: map[string]string{"example.org/team": "data"},
}

// Args returns the arguments of deployerlib.Add. The policy restricts which Targets the items may use.
func Args(policy targets.Policy) deployerlib.DeployerArgs {
	options := Options
	options.Targets = policy
	return declarative.Args("redis-deployer", Type, declarative.HandlerFunc(Sync), options)
}

// Config is the content of spec.config.
type Config struct {
	// Version is the version of Redis. It is required.
	Version string `json:"version"`
	// Memory is the memory limit, for example "1Gi". The default is 256Mi.
	Memory string `json:"memory,omitempty"`
}

// Status is the provider status of an item.
type Status struct {
	// Address is the address under which clients reach the server.
	Address string `json:"address"`
	// Secret is the name of the Secret that contains the password under the key "password".
	Secret string `json:"secret"`
	// Ready reports whether the server is ready.
	Ready bool `json:"ready"`
	// Message explains why the server is not ready. It comes from the Deployment.
	Message string `json:"message,omitempty"`
}

// Sync returns the objects that the library creates for an item.
func Sync(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	config, err := readConfig(req)
	if err != nil {
		return nil, err
	}
	name := req.Name("redis")
	secret, err := ensurePassword(req, name)
	if err != nil {
		return nil, err
	}
	status, err := statusOf(req, name)
	if err != nil {
		return nil, err
	}
	response := declarative.NewBuilder(status).Add(secret, service(name), config.deployment(name))
	if !status.Ready {
		response.Wait("Redis is not ready: %s", status.Message)
	}
	return response.Build()
}

// ensurePassword returns a Secret with the existing password, or with a new one.
func ensurePassword(req *declarative.SyncRequest, name string) (*corev1.Secret, error) {
	now, _, err := declarative.Find[corev1.Secret](req.Children, "Secret", name)
	if err != nil {
		return nil, err
	}
	value, err := declarative.ValueOr(now.Data["password"], func() ([]byte, error) { return []byte(rand.Text()), nil })
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{Data: map[string][]byte{"password": value}}
	secret.Name = name
	return secret, nil
}

// statusOf derives the status from the Deployment.
func statusOf(req *declarative.SyncRequest, name string) (Status, error) {
	status := Status{Address: name + "." + req.Item.Namespace + ".svc:6379", Secret: name, Message: "the Deployment does not exist yet"}
	now, found, err := declarative.Find[appsv1.Deployment](req.Children, "Deployment", name)
	if err != nil || !found {
		return status, err
	}
	seen := now.Status.ObservedGeneration == now.Generation
	status.Message = "its Deployment has just changed"
	for _, condition := range now.Status.Conditions {
		if seen && condition.Type == appsv1.DeploymentAvailable {
			status.Message = condition.Message
		}
	}
	if seen && now.Status.UpdatedReplicas == 1 && now.Status.AvailableReplicas == 1 {
		status.Ready, status.Message = true, ""
	}
	return status, nil
}
