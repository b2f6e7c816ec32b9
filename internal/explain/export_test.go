// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"maps"
	"slices"

	"github.com/deployerkit/deployerkit/contract"
)

// AllExplainedReasons returns a sorted list of the reasons that are explained by a sentence.
func AllExplainedReasons() []contract.Reason { return slices.Sorted(maps.Keys(reasonTexts)) }
