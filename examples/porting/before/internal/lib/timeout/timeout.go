// SPDX-License-Identifier: Apache-2.0

// Package timeout declares the functions with which a deployer asks Landscaper's library whether the timeout of an item
// has passed.
package timeout

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/examples/porting/before/internal/lib"
)

// TimeoutExceeded is a stub.
func TimeoutExceeded(context.Context, *lsv1alpha1.DeployItem, string) (time.Duration, error) {
	return 0, lib.ErrDeclared
}
