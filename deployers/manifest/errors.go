// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

// maxText bounds texts from other sources.
const maxText = 1024

func oneLine(text string) string { return contract.OneLine(text, maxText) }

// optionalObject reads a JSON object that may be missing.
func optionalObject(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	return decodeObject(raw)
}
