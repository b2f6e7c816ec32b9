// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// requirements translates the requirements of one list and collects their faults. Operators: in,
// notin, =, ==, !=, exists, !, gt, lt. Annotations obey the same rules as labels.
func requirements(wanted []lsv1alpha1.Requirement, path *field.Path) ([]labels.Requirement, field.ErrorList) {
	var (
		out    []labels.Requirement
		faults field.ErrorList
	)
	for i, want := range wanted {
		at := path.Index(i)
		check, err := labels.NewRequirement(want.Key, want.Operator, want.Values, field.WithPath(at))
		if err != nil {
			faults = append(faults, fieldErrors(err, at)...)
			continue
		}
		out = append(out, *check)
	}
	return out, faults
}

// fieldErrors takes the aggregate of a requirement apart, so that all faults stay one flat list.
func fieldErrors(err error, at *field.Path) field.ErrorList {
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
