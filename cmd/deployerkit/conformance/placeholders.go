// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// These constants are the placeholders that command lines and files may contain.
const (
	kubeconfigHere = "{kubeconfig}"
	namespaceHere  = "{namespace}"
	nameHere       = "{name}"
	noteHere       = "{note}"
)

// placeholders maps placeholders to their values.
type placeholders map[string]string

// newPlaceholders returns the placeholders that describe an item.
func newPlaceholders(item types.NamespacedName) placeholders {
	return placeholders{namespaceHere: item.Namespace, nameHere: item.Name}
}

// replaceIn returns a text with the placeholders replaced. If an inserted value contains a placeholder, that
// placeholder is not replaced.
func (p placeholders) replaceIn(text string) string {
	var pairs []string
	for here, value := range p {
		pairs = append(pairs, here, value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// replaceInJSON replaces the placeholders in all strings of raw, which must be valid JSON.
func (p placeholders) replaceInJSON(raw []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // preserves large numbers
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(p.replaceInValue(value))
}

func (p placeholders) replaceInValue(value any) any {
	switch v := value.(type) {
	case string:
		return p.replaceIn(v)
	case []any:
		for i := range v {
			v[i] = p.replaceInValue(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = p.replaceInValue(v[key])
		}
	}
	return value
}
