// SPDX-License-Identifier: Apache-2.0

package response

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestIsImmutable(t *testing.T) {
	path := field.NewPath("spec", "x")
	for text, c := range map[string]struct {
		err  *field.Error
		want bool
	}{
		"recognizes a field that is immutable [F104]":                         {field.Invalid(path, "a", "field is immutable"), true},
		"recognizes a field that cannot be modified once set [F104]":          {field.Invalid(path, "a", "field cannot be modified once set"), true},
		"recognizes a field that may not be changed in an update [F104]":      {field.Forbidden(path, "may not be changed in an update."), true},
		"recognizes a field that may not be updated [F104]":                   {field.Forbidden(path, "may not be updated"), true},
		"recognizes a field that can not be modified [F104]":                  {field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds"), true},
		"recognizes a field that may not change once set [F104]":              {field.Invalid(path, []string{"10.0.0.1"}, "may not change once set"), true},
		"recognizes a reference that cannot change [F104]":                    {field.Invalid(path, map[string]string{"a": "b"}, "cannot change roleRef"), true},
		"recognizes updates that are forbidden [F104]":                        {field.Forbidden(path, "updates to provisioner are forbidden."), true},
		"recognizes updates that may not modify a field [F104]":               {field.Forbidden(path, "updates may not modify existing certificate content"), true},
		"recognizes an update from a value that is forbidden [F104]":          {field.Forbidden(path, "update from non-nil value to nil is forbidden"), true},
		"takes no quoted value for the message [F104]":                        {field.Invalid(path, "this is immutable", "must be a number"), false},
		"takes no quoted key for the message [F104]":                          {field.Duplicate(path, "updates to a"), false},
		"takes no field that must be omitted for an immutable field [F104]":   {field.Forbidden(path, "may not be specified when strategy `type` is 'Recreate'"), false},
		"takes no field that must have a value for an immutable field [F104]": {field.Required(path, "must be set"), false},
	} {
		t.Run(text, func(t *testing.T) {
			err := apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", field.ErrorList{c.err})
			if got := IsImmutable(err); got != c.want {
				t.Errorf("IsImmutable(%v) = %v", err, got)
			}
		})
	}
}

func TestIsDryRunRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"recognizes a webhook that does not support dry runs": {apierrors.NewBadRequest(`admission webhook "x" does not support dry run`), true},
		"ignores other errors":                                {apierrors.NewBadRequest("the manifest is wrong"), false},
		"ignores a request that succeeds":                     {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsDryRunRejected(tc.err); got != tc.want {
				t.Errorf("RejectsDryRun(%v) = %v, want %v", tc.err, got, tc.want)
			}
		})
	}
}
