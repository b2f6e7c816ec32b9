// SPDX-License-Identifier: Apache-2.0

package licence

import (
	"context"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/targets"
)

// Type is the type of the deploy items.
const Type = "example.org/licence"

// Options lists the kinds of the children.
var Options = declarative.Options{Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "Secret"}}}

// Args returns the arguments of deployerlib.Add. url is the address of the licence service. policy is what the operator
// allows in Targets.
func Args(url string, policy targets.Policy) deployerlib.DeployerArgs {
	options := Options
	options.Targets = policy
	return declarative.Args("licence-deployer", Type, declarative.Failable(New(url)), options)
}

// Config is the content of spec.config.
type Config struct {
	// Customer is the owner of the licence, such as "acme-12".
	Customer string `json:"customer"`
}

// Status is the provider status of an item.
type Status struct {
	// Customer is the customer whose licence the target has. It is empty if there is no licence.
	Customer string `json:"customer,omitempty"`
	// Error is why there is no licence, or why the licence is not that of the configuration.
	Error string `json:"error,omitempty"`
}

// Handler has a client for the service, which calls for several items use concurrently.
type Handler struct{ service Service }

// New returns a handler that uses the service at a URL.
func New(url string) *Handler { return &Handler{Service{url}} }

var _ declarative.FailableHandler = (*Handler)(nil)

var customers = regexp.MustCompile(`^[a-z]+-[0-9]+$`)

// Validate checks the configuration.
func (h *Handler) Validate(_ context.Context, req *declarative.SyncRequest) error {
	config, err := declarative.Config[Config](req)
	if err != nil {
		return err
	}
	if !customers.MatchString(config.Customer) {
		return deployerlib.ConfigError("spec.config.customer", "%q is no customer: want a name and a number, such as acme-12", config.Customer)
	}
	return nil
}

// SyncChildren gets the licence from the service, and returns a Secret with it.
func (h *Handler) SyncChildren(ctx context.Context, req *declarative.SyncRequest) ([]any, error) {
	config, err := declarative.Config[Config](req)
	if err != nil {
		return nil, err
	}
	key, err := h.service.Licence(ctx, config.Customer)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{StringData: map[string]string{"customer": config.Customer, "licence": key}}
	secret.Name = req.Name("licence")
	return []any{secret}, nil
}

// DetermineStatus reports the error, and the customer of the licence that exists nevertheless.
func (h *Handler) DetermineStatus(_ context.Context, req *declarative.SyncRequest, cause error) (any, error) {
	secret, _, err := declarative.Find[corev1.Secret](req.Children, "Secret", req.Name("licence"))
	status := Status{Customer: string(secret.Data["customer"])}
	if cause != nil {
		status.Error = cause.Error()
	}
	return status, err
}
