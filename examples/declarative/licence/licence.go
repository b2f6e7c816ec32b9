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

// Options lists the kinds of the objects that the handler returns.
var Options = declarative.Options{Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "Secret"}}}

// Args returns the arguments of deployerlib.Add for a licence service at url. The policy restricts which Targets the
// items may use.
func Args(url string, policy targets.Policy) deployerlib.DeployerArgs {
	options := Options
	options.Targets = policy
	return declarative.Args("licence-deployer", Type, declarative.FromFailable(New(url)), options)
}

// Config is the content of spec.config.
type Config struct {
	// Customer is the owner of the licence, such as "acme-12".
	Customer string `json:"customer"`
}

// Status is the provider status of an item.
type Status struct {
	// Customer is the customer for whom the target cluster contains a licence. It is empty if there is no licence.
	Customer string `json:"customer,omitempty"`
	// Error explains why there is no licence, or why the licence does not match the configuration.
	Error string `json:"error,omitempty"`
}

// Handler contains a client for the licence service. The calls for different items use this client concurrently.
type Handler struct{ service Service }

// New returns a handler that uses the licence service at the given URL.
func New(url string) *Handler { return &Handler{Service{url}} }

var _ declarative.FailableHandler = (*Handler)(nil)

var customers = regexp.MustCompile(`^[a-z]+-[0-9]+$`)

// Validate validates the configuration.
func (h *Handler) Validate(_ context.Context, req *declarative.SyncRequest) error {
	config, err := declarative.Config[Config](req)
	if err != nil {
		return err
	}
	if !customers.MatchString(config.Customer) {
		return deployerlib.NewConfigError("spec.config.customer", "%q is not a customer: want a name and a number, such as acme-12", config.Customer)
	}
	return nil
}

// SyncChildren gets the licence from the service and returns a Secret that contains it.
func (h *Handler) SyncChildren(ctx context.Context, req *declarative.SyncRequest) ([]any, error) {
	config, err := declarative.Config[Config](req)
	if err != nil {
		return nil, err
	}
	key, err := h.service.GetLicence(ctx, config.Customer)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{StringData: map[string]string{"customer": config.Customer, "licence": key}}
	secret.Name = req.Name("licence")
	return []any{secret}, nil
}

// DetermineStatus returns a status that contains the given error and, if a licence exists, the licence's customer.
func (h *Handler) DetermineStatus(_ context.Context, req *declarative.SyncRequest, cause error) (any, error) {
	secret, _, err := declarative.Find[corev1.Secret](req.Children, "Secret", req.Name("licence"))
	status := Status{Customer: string(secret.Data["customer"])}
	if cause != nil {
		status.Error = cause.Error()
	}
	return status, err
}
