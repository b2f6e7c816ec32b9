// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// The placeholders in command lines and in texts of files.
const (
	kubeconfigHere = "{kubeconfig}"
	namespaceHere  = "{namespace}"
	nameHere       = "{name}"
	noteHere       = "{note}"
)

// placeholders maps placeholders to their values.
type placeholders map[string]string

// of returns the placeholders of an item.
func of(item types.NamespacedName) placeholders {
	return placeholders{namespaceHere: item.Namespace, nameHere: item.Name}
}

// in replaces the placeholders in a text. Replacements are not searched again.
func (p placeholders) in(text string) string {
	var pairs []string
	for here, value := range p {
		pairs = append(pairs, here, value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// inJSON replaces the placeholders in all strings of a JSON value, which must be valid.
func (p placeholders) inJSON(raw []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // keeps large numbers as they are
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(p.inValue(value))
}

func (p placeholders) inValue(value any) any {
	switch v := value.(type) {
	case string:
		return p.in(v)
	case []any:
		for i := range v {
			v[i] = p.inValue(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = p.inValue(v[key])
		}
	}
	return value
}
