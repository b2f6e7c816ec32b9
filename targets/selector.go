// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// selectorsPath is the name of the list of selectors in error messages. It matches the name in the arguments of
// deployerlib.
const selectorsPath = "targetSelectors"

// MatchesSelectors reports whether a deployer with these selectors is responsible for the Target. At least one of the
// selectors must match. A selector matches if at least one reference in targets and all requirements in annotations and
// labels match. An empty part of a selector always matches. If the list of selectors is empty, every Target matches. If
// t is nil because the item names no Target, MatchesSelectors returns true. The caller must handle an item whose Target
// does not exist. If a requirement has an invalid key, operator or value, MatchesSelectors returns a *SelectorError
// with the path of the requirement, for example targetSelectors[0].labels[1].operator. MatchesSelectors does not check
// the selectors after the first match.
func MatchesSelectors(t *lsv1alpha1.Target, selectors []lsv1alpha1.TargetSelector) (bool, error) {
	if t == nil || len(selectors) == 0 {
		return true, nil
	}
	for i := range selectors {
		matches, err := matchesSelector(t, &selectors[i], field.NewPath(selectorsPath).Index(i))
		if matches || err != nil {
			return matches, err
		}
	}
	return false, nil
}

// ValidateSelectors returns all errors in the selectors as one *SelectorError, or nil if the selectors are valid. Call
// ValidateSelectors at start-up, because MatchesSelectors finds some errors only for some Targets.
func ValidateSelectors(selectors []lsv1alpha1.TargetSelector) error {
	var faults field.ErrorList
	for i := range selectors {
		path := field.NewPath(selectorsPath).Index(i)
		for j := range selectors[i].Targets {
			if selectors[i].Targets[j].Name == "" {
				faults = append(faults, field.Required(path.Child("targets").Index(j).Child("name"), "a reference without a name matches nothing"))
			}
		}
		_, ofAnnotations := parseRequirements(selectors[i].Annotations, path.Child("annotations"))
		_, ofLabels := parseRequirements(selectors[i].Labels, path.Child("labels"))
		faults = append(append(faults, ofAnnotations...), ofLabels...)
	}
	return toSelectorError(faults)
}

func matchesSelector(t *lsv1alpha1.Target, selector *lsv1alpha1.TargetSelector, path *field.Path) (bool, error) {
	if len(selector.Targets) > 0 && !slices.ContainsFunc(selector.Targets, newReferenceMatcher(t)) {
		return false, nil
	}
	matches, err := matchesMap(t.Annotations, selector.Annotations, path.Child("annotations"))
	if !matches || err != nil {
		return false, err
	}
	return matchesMap(t.Labels, selector.Labels, path.Child("labels"))
}

// newReferenceMatcher returns a function that reports whether a reference refers to t. A reference without a namespace
// refers to Targets in all namespaces.
func newReferenceMatcher(t *lsv1alpha1.Target) func(lsv1alpha1.ObjectReference) bool {
	return func(ref lsv1alpha1.ObjectReference) bool {
		return ref.Name == t.Name && (ref.Namespace == "" || ref.Namespace == t.Namespace)
	}
}

func matchesMap(values map[string]string, wanted []lsv1alpha1.Requirement, path *field.Path) (bool, error) {
	checks, faults := parseRequirements(wanted, path)
	if err := toSelectorError(faults); err != nil {
		return false, err
	}
	for i := range checks {
		if !checks[i].Matches(labels.Set(values)) {
			return false, nil
		}
	}
	return true, nil
}

// parseRequirements converts a list of requirements and collects the errors in the list. The operators are in, notin,
// =, ==, !=, exists, !, gt and lt. Requirements for annotations follow the same rules as those for labels.
func parseRequirements(wanted []lsv1alpha1.Requirement, path *field.Path) ([]labels.Requirement, field.ErrorList) {
	var (
		out    []labels.Requirement
		faults field.ErrorList
	)
	for i, want := range wanted {
		at := path.Index(i)
		check, err := labels.NewRequirement(want.Key, want.Operator, want.Values, field.WithPath(at))
		if err != nil {
			faults = append(faults, flattenErrors(err, at)...)
			continue
		}
		out = append(out, *check)
	}
	return out, faults
}

// flattenErrors splits the aggregate error of a requirement, so that all errors form one flat list.
func flattenErrors(err error, at *field.Path) field.ErrorList {
	all := []error{err}
	if aggregate := utilerrors.Aggregate(nil); errors.As(err, &aggregate) {
		all = aggregate.Errors()
	}
	var out field.ErrorList
	for _, one := range all {
		fault := &field.Error{}
		if !errors.As(one, &fault) {
			fault = field.InternalError(at, one)
		}
		out = append(out, fault)
	}
	return out
}
