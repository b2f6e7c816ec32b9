// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

// checkSchemas validates the values of a chart and of its subcharts against their schemas. Helm's own validation is not
// used, because it reads files and URLs that a schema names, and prints values.
func checkSchemas(c *chartv2.Chart, values map[string]any) error {
	if len(c.Schema) > 0 {
		if err := checkSchema(c.Schema, values); err != nil {
			return newError(ReasonValues, "values.schema.json of chart %s: %v", c.Name(), err)
		}
	}
	for _, sub := range c.Dependencies() {
		switch subValues := values[sub.Name()].(type) {
		case nil:
		case map[string]any:
			if err := checkSchemas(sub, subValues); err != nil {
				return err
			}
		default:
			return newError(ReasonValues, "the values of subchart %s must be an object", sub.Name())
		}
	}
	return nil
}

// schemaURL is the address of the schema itself. References in the schema are relative to it.
const schemaURL = "chart:///values.schema.json"

// noLoader is a loader that loads nothing.
type noLoader struct{}

// Load returns a schema that accepts everything for a URN, as Helm does, and an error for every other URL.
func (noLoader) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, fmt.Errorf("refers to %q: a schema must not refer to other documents", url)
}

// checkSchema validates values against a schema. Its errors contain no values.
func checkSchema(schema []byte, values map[string]any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the schema cannot be evaluated")
		}
	}()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(bytes.TrimPrefix(schema, []byte("\xEF\xBB\xBF"))))
	if err != nil {
		return errors.New("the schema is not valid JSON")
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return fmt.Errorf("invalid schema: %w", err)
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return fmt.Errorf("invalid schema: %w", err)
	}
	err = compiled.Validate(values)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return errors.New(strings.Join(describeViolations(invalid, nil), "; "))
	}
	if err != nil {
		return errors.New("the values cannot be validated")
	}
	return nil
}

// maxViolations is the maximum number of violations of a schema in one error.
const maxViolations = 5

// describeViolations returns a text for each violation without further causes. The texts contain the path of the
// value, but not the value.
func describeViolations(e *jsonschema.ValidationError, texts []string) []string {
	if len(texts) >= maxViolations {
		return texts
	}
	for _, cause := range e.Causes {
		texts = describeViolations(cause, texts)
	}
	if len(e.Causes) > 0 {
		return texts
	}
	path := strings.Join(e.InstanceLocation, ".")
	if path == "" {
		path = "values"
	}
	if text := path + " " + describeKind(e.ErrorKind); !slices.Contains(texts, text) {
		texts = append(texts, text)
	}
	return texts
}

// describeKind describes the violated rule, which comes from the schema.
func describeKind(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be of type %s, is %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		return fmt.Sprintf("must contain %s", strings.Join(k.Missing, ", "))
	case *kind.AdditionalProperties:
		return fmt.Sprintf("must not contain %s", strings.Join(k.Properties, ", "))
	case *kind.Enum:
		return "must be one of the values that the schema lists"
	case *kind.Pattern:
		return fmt.Sprintf("must match the pattern %q", k.Want)
	case *kind.Format:
		return fmt.Sprintf("must have the format %q", k.Want)
	}
	if path := k.KeywordPath(); len(path) > 0 {
		return fmt.Sprintf("violates the rule %q", strings.Join(path, "/"))
	}
	return "is not allowed"
}
