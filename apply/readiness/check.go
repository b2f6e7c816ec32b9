// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	health "github.com/gardener/landscaper/apis/deployer/utils/readinesschecks"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lookup reads the objects that a check selects. An implementation reads them from the target that the check names, and
// returns an error if it cannot open this target or cannot read the objects. It is not an error if no object is found.
type Lookup interface {
	// Get reads one object. It returns nil if the object does not exist or if the cluster does not know its kind. It
	// returns ErrFinished if the object does not exist because it has finished its work. Such an object meets all
	// requirements.
	Get(ctx context.Context, ref lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error)
	// List reads all objects of a kind that carry all of the given labels, in all namespaces.
	List(ctx context.Context, gvk schema.GroupVersionKind, labels map[string]string) ([]*unstructured.Unstructured, error)
}

// ErrFinished is the error of Lookup.Get for an object that has finished its work and no longer exists.
var ErrFinished = errors.New("has finished and no longer exists")

// Check is a compiled custom readiness check. It is immutable.
type Check struct {
	// Spec is the specification from which the check was compiled.
	Spec health.CustomReadinessCheckConfiguration

	requirements []requirement
}

// SpecError describes an error in the specification of a check.
type SpecError struct {
	// Path is the path of the invalid field, relative to the specification, such as "requirements[0].operator".
	Path string
	// Reason explains why the field is invalid.
	Reason string
}

// Error returns the path and the reason.
func (e *SpecError) Error() string { return e.Path + ": " + e.Reason }

func newSpecError(path, format string, args ...any) error {
	return &SpecError{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// Compile validates a specification and prepares it for use, even if the check is disabled. It returns a *SpecError for
// the first invalid field.
func Compile(spec health.CustomReadinessCheckConfiguration) (*Check, error) {
	if spec.Name == "" {
		return nil, newSpecError("name", "required")
	}
	if spec.TargetName != nil && *spec.TargetName == "" {
		return nil, newSpecError("targetName", "must not be empty")
	}
	if err := checkSelection(spec); err != nil {
		return nil, err
	}
	if len(spec.Requirements) == 0 {
		return nil, newSpecError("requirements", "required: at least one requirement")
	}
	check := &Check{Spec: spec}
	for i, item := range spec.Requirements {
		compiled, err := compileRequirement(fmt.Sprintf("requirements[%d]", i), item)
		if err != nil {
			return nil, err
		}
		check.requirements = append(check.requirements, *compiled)
	}
	return check, nil
}

// checkSelection validates the two fields of a specification that select objects.
func checkSelection(spec health.CustomReadinessCheckConfiguration) error {
	if len(spec.Resource) == 0 && spec.LabelSelector == nil {
		return newSpecError("resourceSelector", "required, unless labelSelector is set")
	}
	for i, ref := range spec.Resource {
		path := fmt.Sprintf("resourceSelector[%d]", i)
		if err := checkKind(path, ref.APIVersion, ref.Kind); err != nil {
			return err
		}
		if ref.Name == "" {
			return newSpecError(path+".name", "required")
		}
	}
	selector := spec.LabelSelector
	if selector == nil {
		return nil
	}
	if err := checkKind("labelSelector", selector.APIVersion, selector.Kind); err != nil {
		return err
	}
	if len(selector.Labels) == 0 {
		return newSpecError("labelSelector.matchLabels", "required: at least one label")
	}
	if _, err := labels.ValidatedSelectorFromSet(selector.Labels); err != nil {
		return newSpecError("labelSelector.matchLabels", "%s", err.Error())
	}
	return nil
}

// checkKind validates the two fields that name a kind.
func checkKind(path, apiVersion, kind string) error {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" {
		return newSpecError(path+".apiVersion", "is %q, want \"version\" or \"group/version\"", apiVersion)
	}
	if kind == "" {
		return newSpecError(path+".kind", "required")
	}
	return nil
}

// Run reads the objects that the check selects, and reports whether each of them meets all requirements. The result is
// not ready if an object does not exist, unless the object is done, or if the label selector matches no object. If the
// check is disabled, the result is ready and Run reads no objects. Run returns the errors of the lookup and of
// Check.CheckObject.
func (c *Check) Run(ctx context.Context, lookup Lookup) (Result, error) {
	if c.Spec.Disabled {
		return newReady(), nil
	}
	for _, ref := range c.Spec.Resource {
		obj, err := lookup.Get(ctx, ref)
		if errors.Is(err, ErrFinished) {
			continue
		}
		if err != nil {
			return Result{}, fmt.Errorf("readiness check %q: %w", c.Spec.Name, err)
		}
		if obj == nil {
			return c.newWaiting(formatName(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name) + ": does not exist"), nil
		}
		if result, err := c.CheckObject(ctx, obj); err != nil || !result.IsReady() {
			return result, err
		}
	}
	return c.runSelector(ctx, lookup)
}

// runSelector checks the objects that match the label selector.
func (c *Check) runSelector(ctx context.Context, lookup Lookup) (Result, error) {
	selector := c.Spec.LabelSelector
	if selector == nil {
		return newReady(), nil
	}
	found, err := lookup.List(ctx, schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind), selector.Labels)
	if err != nil {
		return Result{}, fmt.Errorf("readiness check %q: %w", c.Spec.Name, err)
	}
	if len(found) == 0 {
		return c.newWaiting(fmt.Sprintf("no %s has the labels %s", selector.Kind, labels.Set(selector.Labels))), nil
	}
	for _, obj := range found {
		if result, err := c.CheckObject(ctx, obj); err != nil || !result.IsReady() {
			return result, err
		}
	}
	return newReady(), nil
}

// CheckObject reports whether one object meets all requirements, even if the check does not select this object. If the
// object is not ready, the reason in the result names the check, the object and the field. The error wraps a *SpecError
// if a requirement causes too much work on this object. It wraps context.Cause(ctx) if the context ends first.
func (c *Check) CheckObject(ctx context.Context, obj *unstructured.Unstructured) (Result, error) {
	if c.Spec.Disabled {
		return newReady(), nil
	}
	if obj == nil {
		return c.newWaiting("object does not exist"), nil
	}
	for i := range c.requirements {
		reason, err := c.requirements[i].describeUnmet(ctx, obj)
		if err != nil {
			return Result{}, fmt.Errorf("readiness check %q: %s: %w", c.Spec.Name, FormatName(obj), err)
		}
		if reason != "" {
			return c.newWaiting(FormatName(obj) + ": " + reason), nil
		}
	}
	return newReady(), nil
}

func (c *Check) newWaiting(reason string) Result {
	return newWaiting(fmt.Sprintf("check %q: %s", c.Spec.Name, reason))
}
