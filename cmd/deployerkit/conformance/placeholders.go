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

// placeholdersFor returns the placeholders that describe an item.
func placeholdersFor(item types.NamespacedName) placeholders {
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

// inJSON returns a JSON value with the placeholders in all strings replaced. The parameter `raw` must be valid JSON.
func (p placeholders) inJSON(raw []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // preserves large numbers
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(p.inValue(value))
}

func (p placeholders) inValue(value any) any {
	switch v := value.(type) {
	case string:
		return p.replaceIn(v)
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
