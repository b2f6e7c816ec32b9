// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"slices"
)

// Reserved returns the sorted paths of the reserved labels and annotations in a manifest or merge patch, such as
// `metadata.labels[deployerkit.dev/item]`. It searches every metadata field of the body, not only that of the object
// itself, because controllers copy the labels and annotations of a pod template or a Service to other objects. It
// returns nil if the body contains no reserved key.
func Reserved(body map[string]any) []string {
	found := reserved(nil, "", body)
	slices.Sort(found)
	return found
}

func reserved(found []string, path string, value any) []string {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if key == "metadata" {
				found = reservedKeys(found, join(path, key), child)
			}
			found = reserved(found, join(path, key), child)
		}
	case []any:
		for i, child := range value {
			found = reserved(found, fmt.Sprintf("%s[%d]", path, i), child)
		}
	}
	return found
}

func reservedKeys(found []string, path string, metadata any) []string {
	fields, _ := metadata.(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		keys, _ := fields[field].(map[string]any)
		for key := range keys {
			if IsReserved(key) {
				found = append(found, fmt.Sprintf("%s.%s[%s]", path, field, key))
			}
		}
	}
	return found
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
