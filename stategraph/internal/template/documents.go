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

// decodeDocuments decodes the objects in a YAML text that may contain several documents. It omits empty documents.
// Errors contain the number of the document and the line in the text.
func decodeDocuments(text string) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	lines := strings.Split(text, "\n")
	for start, number := 0, 1; start <= len(lines); number++ {
		end := start
		for end < len(lines) && !isSeparator(lines[end]) {
			end++
		}
		obj, err := decodeDocument(strings.Join(lines[start:end], "\n"), start)
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

// decodeDocument decodes one object. It returns nil if the text is empty. In the file, before lines precede the text.
func decodeDocument(text string, before int) (*unstructured.Unstructured, error) {
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, convertYAMLError(err, before)
	}
	var body any
	if err := utiljson.Unmarshal(asJSON, &body); err != nil {
		return nil, fmt.Errorf("line %d of the rendered text: cannot decode the document", before+1)
	}
	switch fields := body.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return &unstructured.Unstructured{Object: fields}, nil
	}
	return nil, fmt.Errorf("line %d of the rendered text: it is not an object", before+1)
}

// yamlLine matches the line number in an error of the YAML decoder.
var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// yamlValue matches the part of a YAML decoding error that quotes a value. The value may be a secret from the
// configuration.
var yamlValue = regexp.MustCompile("(?s)(unknown anchor|invalid map key:|cannot (?:decode|unmarshal) !!\\w+) (?:'.*'|`.*`|.*$)")

// convertYAMLError converts an error of the YAML decoder. The returned error contains the line number in the whole
// text, but no values.
func convertYAMLError(err error, before int) error {
	text := yamlValue.ReplaceAllString(err.Error(), "$1 …")
	found := yamlLine.FindStringSubmatch(text)
	if found == nil {
		return fmt.Errorf("line %d of the rendered text: %s", before+1, text)
	}
	number, _ := strconv.Atoi(found[1])
	return fmt.Errorf("line %d of the rendered text: %s", before+number, found[2])
}
