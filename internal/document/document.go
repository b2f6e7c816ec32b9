// SPDX-License-Identifier: Apache-2.0

// Package document reads YAML and JSON documents from untrusted sources. The memory that reading a text takes is
// limited by the size of the text.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
)

const (
	// maxConfig is the maximum size of a document in bytes. It is larger than any object that an API server stores.
	maxConfig = 2 << 20
	// maxYAML is the maximum size of a YAML document in bytes. Reading YAML takes more than twenty times as much memory
	// as the size of the text.
	maxYAML = 512 << 10
	// maxValues is the maximum number of values in a document. A kubeconfig with 500 clusters has about 10 000 values.
	maxValues = 20_000
	// maxDepth is the maximum nesting depth of a document.
	maxDepth = 50
)

// These errors are the reasons why Read rejects a document.
var (
	errSize   = fmt.Errorf("is too large: more than %d KiB, or %d KiB of YAML", maxConfig>>10, maxYAML>>10)
	errValues = fmt.Errorf("has more than %d values", maxValues)
	errDepth  = fmt.Errorf("is nested more than %d levels deep", maxDepth)
	errSyntax = errors.New("is neither valid YAML nor JSON, or has a key twice")
	errAlias  = errors.New("has an anchor, an alias or a merge key, which are not supported")
	errSecond = errors.New("has more than one document")
)

// Read reads one YAML or JSON document. It returns nil for an empty document. It rejects a text that contains aliases,
// duplicate keys in one object, a second document, or too many values. It detects too many values before it parses the
// text. Errors contain no content of the document.
func Read(text []byte) (any, error) {
	switch {
	case len(text) > maxConfig:
		return nil, errSize
	case !utf8.Valid(text):
		return nil, errSyntax
	}
	if err := checkIndicators(text); err != nil {
		return nil, err
	}
	if tree, ok, err := readJSON(text); ok {
		return tree, err
	}
	if len(text) > maxYAML {
		return nil, errSize
	}
	return readYAML(text)
}

// checkIndicators returns an error if a YAML or JSON text may contain too many values or levels. It does not parse the
// text. Instead, it counts the characters that can precede a value, including those in strings. In a valid text, one of
// these characters precedes each value except the first.
func checkIndicators(text []byte) error {
	count := 0
	for i, c := range text {
		switch c {
		case '[', '{', ',', ':', '#', '%', '!', '&', '*':
			count++
		case '-', '?':
			if i+1 == len(text) || bytes.IndexByte([]byte(" \t\r\n"), text[i+1]) >= 0 {
				count++
			}
		}
		if count > maxValues {
			return errValues
		}
	}
	return nil
}

// readJSON decodes the text if it is JSON. Otherwise the result `ok` is false.
func readJSON(text []byte) (tree any, ok bool, err error) {
	if !json.Valid(text) {
		return nil, false, nil
	}
	if isTooDeep(text) {
		return nil, true, errDepth
	}
	strict, err := kjson.UnmarshalStrict(text, &tree, kjson.DisallowDuplicateFields)
	if err != nil || len(strict) > 0 {
		return nil, true, errSyntax
	}
	return tree, true, nil
}

// isTooDeep reports whether valid JSON is nested too deeply.
func isTooDeep(text []byte) bool {
	depth, quoted, escaped := 0, false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// readYAML parses the text to nodes and then converts the nodes. Parsing does not expand aliases, and a node that is an
// alias is rejected.
func readYAML(text []byte) (any, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, errSyntax
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, errSecond
	} else if !errors.Is(err, io.EOF) {
		return nil, errSyntax
	}
	return convertNode(&document, 0)
}

func convertNode(n *yaml.Node, depth int) (any, error) {
	switch {
	case depth > maxDepth:
		return nil, errDepth
	case n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge":
		return nil, errAlias
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return convertNode(n.Content[0], depth)
	case yaml.SequenceNode:
		return convertList(n, depth)
	case yaml.MappingNode:
		return convertObject(n, depth)
	case yaml.ScalarNode:
		return convertScalar(n)
	default:
		return nil, errSyntax
	}
}

func convertList(n *yaml.Node, depth int) (any, error) {
	if n.ShortTag() != "!!seq" {
		return nil, errSyntax
	}
	list := make([]any, 0, len(n.Content))
	for _, item := range n.Content {
		value, err := convertNode(item, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// convertObject converts a YAML mapping to an object. It returns an error if two keys are equal in JSON.
func convertObject(n *yaml.Node, depth int) (any, error) {
	if n.ShortTag() != "!!map" {
		return nil, errSyntax
	}
	object := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind == yaml.AliasNode || key.Anchor != "" || key.ShortTag() == "!!merge":
			return nil, errAlias
		case key.Kind != yaml.ScalarNode:
			return nil, errSyntax
		}
		if _, taken := object[key.Value]; taken {
			return nil, errSyntax
		}
		value, err := convertNode(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		object[key.Value] = value
	}
	return object, nil
}

// yamlBooleans contains the other spellings of true and false in YAML 1.1, which Kubernetes accepts.
var yamlBooleans = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

func convertScalar(n *yaml.Node) (any, error) {
	var value any
	switch n.ShortTag() {
	case "!!str":
		if is, known := yamlBooleans[n.Value]; known && n.Style == 0 {
			return is, nil
		}
		return n.Value, nil
	case "!!timestamp":
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!bool", "!!int", "!!float", "!!binary":
		if err := n.Decode(&value); err != nil {
			return nil, errSyntax
		}
	default:
		return nil, errSyntax
	}
	switch v := value.(type) {
	case int:
		return int64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errSyntax
		}
	}
	return value, nil
}
