// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reason is the reason why a Target could not be resolved.
type Reason string

const (
	// ReasonSecretMissing means that the referenced secret does not exist. It may be created later. Secrets are not
	// watched, so retry after a while.
	ReasonSecretMissing Reason = "SecretMissing"
	// ReasonSecretUnreadable means that the API server did not respond or refused the request. Retry after a while.
	ReasonSecretUnreadable Reason = "SecretUnreadable"
	// ReasonSpecInvalid means that the spec of the Target is invalid. The Target must be changed.
	ReasonSpecInvalid Reason = "SpecInvalid"
	// ReasonContentInvalid means that the secret exists, but lacks the key or contains a value that is not YAML. The
	// secret must be changed. A change of a secret triggers no reconcile.
	ReasonContentInvalid Reason = "ContentInvalid"
)

// ResolveError is returned if a Target cannot be resolved. Use errors.As to find it. Its text contains the names of the
// Target and the secret, and possibly a key of the secret, but no content.
type ResolveError struct {
	Reason Reason
	// Target is the name of the Target.
	Target types.NamespacedName
	// Secret is the name of the referenced secret in the Target's namespace.
	Secret string
	// Err is the cause: an error of the API server, or an error that describes the invalid field or value.
	Err error
}

func (e *ResolveError) Error() string {
	if e.Reason == ReasonSpecInvalid {
		return fmt.Sprintf("resolve Target %s: %v", e.Target, e.Err)
	}
	return fmt.Sprintf("resolve Target %s: secret %s: %v", e.Target, e.Secret, e.Err)
}

// Unwrap returns the cause.
func (e *ResolveError) Unwrap() error {
	return e.Err
}

// IsConfigError reports whether the Target or the content of its secret is wrong, so that a user must change one of
// them.
func (e *ResolveError) IsConfigError() bool {
	return e.Reason == ReasonSpecInvalid || e.Reason == ReasonContentInvalid
}

func newResolveError(t *lsv1alpha1.Target, reason Reason, cause error) *ResolveError {
	return &ResolveError{Reason: reason, Target: client.ObjectKeyFromObject(t), Secret: t.Spec.SecretRef.Name, Err: cause}
}

// SelectorError lists the errors in target selectors. Its text is one line with the paths of all invalid fields. Each
// individual error is a *field.Error, which errors.As can find.
type SelectorError struct {
	// Errors contains at least one error.
	Errors field.ErrorList
}

func (e *SelectorError) Error() string {
	return e.Errors.ToAggregate().Error()
}

// Unwrap returns the individual errors.
func (e *SelectorError) Unwrap() []error {
	out := make([]error, 0, len(e.Errors))
	for _, fault := range e.Errors {
		out = append(out, fault)
	}
	return out
}

// toSelectorError returns a SelectorError, or nil if the list is empty.
func toSelectorError(faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	return &SelectorError{Errors: faults}
}

// ConfigError is returned if the configuration of a Target cannot be used because of one of its fields. Use errors.As
// to find it. Every retry fails until the configuration or the Policy is changed.
type ConfigError struct {
	// Field is the path of the field, for example users[0].user.exec. It contains only indices and field names that
	// this package knows, and no other text from the configuration.
	Field string
	// Reason explains why the field cannot be used. It contains no text from the configuration.
	Reason string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("target configuration: %s: %s", e.Field, e.Reason)
}

// IsConfigError returns true, because only the author of the Target, or the operator, can resolve the error.
func (e *ConfigError) IsConfigError() bool { return true }

func newConfigError(path, reason string) *ConfigError {
	return &ConfigError{Field: path, Reason: reason}
}

// UnreachableError is returned if a target cannot be used at the moment. Until RetryAfter has passed, every use of the
// client for this target fails immediately, without a request. Use errors.As to find the error.
type UnreachableError struct {
	// RetryAfter is how long to wait before the next attempt. It is greater than zero.
	RetryAfter time.Duration
	// Err is the last failure. It is nil while the first attempt to connect is still in progress.
	Err error
}

func (e *UnreachableError) Error() string {
	if e.Err == nil {
		return "target does not answer yet"
	}
	return fmt.Sprintf("target cannot be reached: %v", e.Err)
}

// Unwrap returns the last failure.
func (e *UnreachableError) Unwrap() error { return e.Err }
