// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"strings"
)

// kinds maps each kind of value to its JSON schema. All schemas accept null, which means that the value is not set.
var kinds = map[string]string{
	"any":        `{}`,
	"bool":       `{"type": ["boolean", "null"]}`,
	"string":     `{"type": ["string", "null"]}`,
	"strings":    `{"type": ["array", "null"], "items": {"type": "string"}}`,
	"positive":   `{"type": ["integer", "null"], "minimum": 1}`,
	"shards":     `{"type": ["integer", "null"], "minimum": 1, "maximum": 100}`,
	"count":      `{"type": ["integer", "null"], "minimum": 0}`,
	"port":       `{"type": ["integer", "null"], "minimum": 1, "maximum": 65535}`,
	"ports":      `{"type": ["array", "null"], "items": {"type": "integer", "minimum": 1, "maximum": 65535}}`,
	"duration":   `{"type": ["string", "null"], "pattern": "^([0-9.]+(ns|us|µs|ms|s|m|h))+$"}`,
	"object":     `{"type": ["object", "null"]}`,
	"objects":    `{"type": ["array", "null"], "items": {"type": "object"}}`,
	"list":       `{"type": ["array", "null"], "items": {"type": ["object", "string"]}}`,
	"pullPolicy": `{"enum": ["Always", "IfNotPresent", "Never", null]}`,
	"strategy":   `{"enum": ["apply", "update", "patch", "merge", "mergeOverwrite", null]}`,
	"verbosity": `{"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"},
		{"type": "string", "pattern": "^([Ee][Rr][Rr][Oo][Rr]|[Ii][Nn][Ff][Oo]|[Dd][Ee][Bb][Uu][Gg]|[0-9]+)?$"}]}`,
}

// open contains the groups of values to which users may add keys that the chart does not define.
var open = map[string]bool{"podSecurityContext": true, "securityContext": true}

// renderSchema returns the content of the file values.schema.json.
func (c *Chart) renderSchema() (string, error) {
	root := map[string]any{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": map[string]any{}}
	for _, v := range c.values() {
		at, parts := root, strings.Split(v.path, ".")
		for _, part := range parts[:len(parts)-1] {
			properties := at["properties"].(map[string]any)
			if properties[part] == nil {
				group := map[string]any{"type": []string{"object", "null"}, "properties": map[string]any{}}
				if !open[part] {
					group["additionalProperties"] = false
				}
				properties[part] = group
			}
			at = properties[part].(map[string]any)
		}
		one := map[string]any{}
		if err := json.Unmarshal([]byte(kinds[v.kind]), &one); err != nil {
			return "", fmt.Errorf("value %s: %w", v.path, err)
		}
		one["description"] = v.doc
		at["properties"].(map[string]any)[parts[len(parts)-1]] = one
	}
	out, err := json.MarshalIndent(root, "", "  ")
	return string(out) + "\n", err
}
