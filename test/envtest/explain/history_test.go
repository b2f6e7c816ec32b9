// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/history"
)

// historyOf requests the history of an item from the given address. It discards the history and returns only the error.
func historyOf(ctx context.Context, address string, config *rest.Config, item types.NamespacedName) error {
	c, err := history.NewClient(config, address, nil)
	if err != nil {
		return err
	}
	_, err = c.Get(ctx, item)
	return err
}
