// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// content returns the raw value of the key, or without a key all values as one JSON object.
// Errors name keys only: the texts of the YAML parser quote what they stumble over.
func content(data map[string][]byte, key string) (string, error) {
	if key != "" {
		value, exists := data[key]
		if !exists {
			return "", fmt.Errorf("key %q is missing", key)
		}
		return string(value), nil
	}
	all := make(map[string]json.RawMessage, len(data))
	for _, name := range slices.Sorted(maps.Keys(data)) {
		value, err := yaml.YAMLToJSON(data[name])
		if err != nil {
			return "", fmt.Errorf("the value of key %q is not valid YAML", name)
		}
		all[name] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", errors.New("the values cannot be expressed as one JSON object")
	}
	return string(text), nil
}
