// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"maps"
	"slices"

	"github.com/deployerkit/deployerkit/contract"
)

// ExplainedReasons returns the reasons that have a sentence, sorted.
func ExplainedReasons() []contract.Reason { return slices.Sorted(maps.Keys(sentences)) }
