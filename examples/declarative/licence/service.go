// SPDX-License-Identifier: Apache-2.0

package licence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// Service is a client for the web service that issues the licences.
type Service struct{ url string }

const (
	patience  = 10 * time.Second
	maxLength = 4096
)

// GetLicence gets the licence of a customer. If the service does not know the customer, the error is a
// deployerlib.NewConfigError, and the item fails without a retry. After any other error, a retry can help.
func (s Service) GetLicence(ctx context.Context, customer string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience) // the deadline of the item also applies
	defer cancel()
	where, err := url.JoinPath(s.url, "licences", customer)
	if err != nil {
		return "", fmt.Errorf("address of the licence service: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("ask the licence service: %w", err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask the licence service: %w", err)
	}
	key, err := io.ReadAll(io.LimitReader(answer.Body, maxLength))
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return "", fmt.Errorf("read the answer of the licence service: %w", err)
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return string(key), nil
	case http.StatusNotFound:
		return "", deployerlib.NewConfigError("spec.config.customer", "the licence service does not know %q", customer)
	default:
		return "", fmt.Errorf("the licence service answers %s", answer.Status)
	}
}
