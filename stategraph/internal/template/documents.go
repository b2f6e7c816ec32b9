// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// documents decodes the objects in a YAML text. Empty documents are left out. Errors name the document and the line of
// the text.
func documents(text string) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	lines := strings.Split(text, "\n")
	for start, number := 0, 1; start <= len(lines); number++ {
		end := start
		for end < len(lines) && !separator(lines[end]) {
			end++
		}
		obj, err := document(strings.Join(lines[start:end], "\n"), start)
		if err != nil {
			return nil, fmt.Errorf("document %d, %w", number, err)
		}
		if obj != nil {
			objs = append(objs, obj)
		}
		start = end + 1
	}
	return objs, nil
}

// document decodes one object, or returns nil if there is none. before is how many lines come before it.
func document(text string, before int) (*unstructured.Unstructured, error) {
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, yamlFault(err, before)
	}
	var body any
	if err := utiljson.Unmarshal(asJSON, &body); err != nil {
		return nil, fmt.Errorf("which begins in line %d of the result: it cannot be read", before+1)
	}
	switch fields := body.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return &unstructured.Unstructured{Object: fields}, nil
	}
	return nil, fmt.Errorf("which begins in line %d of the result: it is no object", before+1)
}

// yamlLine matches the line number in an error of the YAML decoder.
var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// yamlValue matches where the YAML decoder quotes a value that it read, which may be a secret of the configuration.
var yamlValue = regexp.MustCompile("(?s)(unknown anchor|invalid map key:|cannot (?:decode|unmarshal) !!\\w+) (?:'.*'|`.*`|.*$)")

// yamlFault converts an error of the YAML decoder. It gives the line in the whole text, and shows no values.
func yamlFault(err error, before int) error {
	text := yamlValue.ReplaceAllString(err.Error(), "$1 …")
	found := yamlLine.FindStringSubmatch(text)
	if found == nil {
		return fmt.Errorf("which begins in line %d of the result: %s", before+1, text)
	}
	number, _ := strconv.Atoi(found[1])
	return fmt.Errorf("line %d of the result: %s", before+number, found[2])
}
