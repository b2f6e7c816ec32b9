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

// documents makes objects of YAML. Empty documents are left out.
// Errors name the document and the line of the text.
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

// document makes one object; nil when there is nothing in it. before is how many lines come before it.
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

// yamlLine is how the YAML decoder names a line.
var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// yamlValue is where the YAML decoder quotes what it read: that may be a secret of the configuration.
var yamlValue = regexp.MustCompile("(?s)(unknown anchor|invalid map key:|cannot (?:decode|unmarshal) !!\\w+) (?:'.*'|`.*`|.*$)")

// yamlFault gives the line in the whole text, and shows no values.
func yamlFault(err error, before int) error {
	text := yamlValue.ReplaceAllString(err.Error(), "$1 …")
	found := yamlLine.FindStringSubmatch(text)
	if found == nil {
		return fmt.Errorf("which begins in line %d of the result: %s", before+1, text)
	}
	number, _ := strconv.Atoi(found[1])
	return fmt.Errorf("line %d of the result: %s", before+number, found[2])
}
