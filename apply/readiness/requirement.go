// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	health "github.com/gardener/landscaper/apis/deployer/utils/readinesschecks"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/selection"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsjson "sigs.k8s.io/json"

	"github.com/deployerkit/deployerkit/apply/jsonpath"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// operators contains the operators that a requirement may use.
var operators = []selection.Operator{
	selection.Exists, selection.DoesNotExist, selection.Equals, selection.DoubleEquals,
	selection.NotEquals, selection.In, selection.NotIn,
}

// requirement is one compiled requirement of a check.
type requirement struct {
	specPath string // the path of this requirement in the specification, such as "requirements[0]"
	path     *jsonpath.Path
	operator selection.Operator
	values   []any
	weight   int // the total size of the values, encoded as JSON
}

// maxComparison limits the work of a comparison. The work is the number of values that the path finds, multiplied by
// the size in bytes of all values in the requirement.
const maxComparison = 32 << 20

// compileRequirement compiles the requirement at the given path of the specification.
func compileRequirement(at string, spec health.RequirementSpec) (*requirement, error) {
	path, err := jsonpath.Parse(spec.JsonPath)
	if err != nil {
		return nil, newSpecError(at+".jsonPath", "%q %s", spec.JsonPath, err.Error())
	}
	if !slices.Contains(operators, spec.Operator) {
		return nil, newSpecError(at+".operator", "is %q, want one of %q", spec.Operator, operators)
	}
	if err := checkCount(at+".values", spec); err != nil {
		return nil, err
	}
	compiled := &requirement{specPath: at, path: path, operator: spec.Operator}
	for i, raw := range spec.Value {
		value, err := parseValue(raw.Raw)
		if err != nil {
			return nil, newSpecError(fmt.Sprintf("%s.values[%d]", at, i), "%s", err.Error())
		}
		compiled.values = append(compiled.values, value)
		compiled.weight += len(raw.Raw)
	}
	return compiled, nil
}

// checkCount checks that the operator accepts the number of values.
func checkCount(at string, spec health.RequirementSpec) error {
	switch spec.Operator {
	case selection.Exists, selection.DoesNotExist:
		return nil // values are allowed but ignored
	case selection.In, selection.NotIn:
		if len(spec.Value) == 0 {
			return newSpecError(at, "required: at least one value for operator %q", spec.Operator)
		}
	default:
		if len(spec.Value) != 1 {
			return newSpecError(at, "has %d values, but operator %q takes exactly one", len(spec.Value), spec.Operator)
		}
	}
	return nil
}

// parseValue parses {"value": <any JSON>}.
func parseValue(raw []byte) (any, error) {
	var wrapped struct {
		Value json.RawMessage `json:"value"`
	}
	strict, err := sigsjson.UnmarshalStrict(raw, &wrapped)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return nil, fmt.Errorf(`want {"value": ...}: %w`, err)
	}
	if len(wrapped.Value) == 0 {
		return nil, fmt.Errorf(`want {"value": ...}`)
	}
	var value any
	if err := utiljson.Unmarshal(wrapped.Value, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// describeUnmet explains why an object does not meet the requirement. It returns "" if the object meets the
// requirement. The error is a *SpecError if the comparison would take too much work. It wraps context.Cause(ctx) if the
// context ends first.
func (r *requirement) describeUnmet(ctx context.Context, obj *unstructured.Unstructured) (string, error) {
	found, err := r.path.Find(ctx, obj.Object)
	missing := errors.Is(err, jsonpath.ErrNotFound)
	switch {
	case errors.Is(err, jsonpath.ErrLimit):
		return "", newSpecError(r.specPath+".jsonPath", "%s", err.Error())
	case err != nil && !missing:
		return "", err
	case r.operator == selection.DoesNotExist && missing:
		return "", nil
	case r.operator == selection.DoesNotExist:
		return fmt.Sprintf("%s exists, but must not exist", r.path), nil
	case missing:
		return fmt.Sprintf("%s does not exist", r.path), nil
	case r.operator == selection.Exists:
		return "", nil
	case len(found) > maxComparison/r.weight:
		return "", newSpecError(r.specPath+".values", "are too many to be compared with the %d values at %s", len(found), r.path)
	}
	for _, value := range found {
		if !r.matches(value) {
			return r.formatReason(obj, value), nil
		}
	}
	return "", nil
}

// matches reports whether a value satisfies the requirement. The path of the requirement may find several values.
func (r *requirement) matches(value any) bool {
	listed := slices.ContainsFunc(r.values, func(want any) bool { return jsondiff.Equal(value, want) })
	if r.operator == selection.NotEquals || r.operator == selection.NotIn {
		return !listed
	}
	return listed
}

// formatReason explains why the value that was found does not meet the requirement. It omits the value if the object is
// a Secret.
func (r *requirement) formatReason(obj *unstructured.Unstructured, value any) string {
	want := "want"
	if r.operator == selection.NotEquals || r.operator == selection.NotIn {
		want = "want anything but"
	}
	if obj.GetKind() == "Secret" {
		return fmt.Sprintf("%s does not have the value that the check wants", r.path)
	}
	wanted := make([]string, 0, len(r.values))
	for _, item := range r.values {
		wanted = append(wanted, formatShort(item))
	}
	return fmt.Sprintf("%s is %s, %s %v", r.path, formatShort(value), want, wanted)
}

// formatShort returns a value as JSON, cut to at most 80 characters.
func formatShort(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	if line := []rune(string(raw)); len(line) > 80 {
		return string(line[:79]) + "…"
	}
	return string(raw)
}
