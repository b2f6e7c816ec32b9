// SPDX-License-Identifier: Apache-2.0

// Package timeout declares how deployers ask Landscaper's library whether their timeout has passed.
package timeout

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/examples/porting/before/internal/lib"
)

// TimeoutExceeded is only a declaration.
func TimeoutExceeded(context.Context, *lsv1alpha1.DeployItem, string) (time.Duration, error) {
	return 0, lib.ErrDeclared
}
