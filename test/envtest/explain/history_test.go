// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/history"
)

// historyOf reads a history and returns the error.
func historyOf(ctx context.Context, address string, config *rest.Config, item types.NamespacedName) error {
	c, err := history.NewClient(config, address, nil)
	if err != nil {
		return err
	}
	_, err = c.Get(ctx, item)
	return err
}
