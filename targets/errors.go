// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reason is why a Target could not be resolved.
type Reason string

const (
	// SecretMissing means that the referenced secret does not exist. It may be created later. Secrets are not watched,
	// so retry after a while.
	SecretMissing Reason = "SecretMissing"
	// SecretUnreadable means that the API server did not respond or refused the request. Retry after a while.
	SecretUnreadable Reason = "SecretUnreadable"
	// SpecInvalid means that the Target itself is invalid until it is changed.
	SpecInvalid Reason = "SpecInvalid"
	// ContentInvalid means that the secret exists but lacks the key, or that a value is not YAML. A change of the
	// secret is required, which triggers no reconcile.
	ContentInvalid Reason = "ContentInvalid"
)

// ResolveError is the error of a Target that could not be resolved. Use errors.As to find it. Its text contains the
// names of the Target and the secret and possibly a key, but no content.
type ResolveError struct {
	Reason Reason
	// Target is the name of the Target.
	Target types.NamespacedName
	// Secret is the name of the referenced secret in the Target's namespace.
	Secret string
	// Err is the cause: the error of the API server, or what is invalid.
	Err error
}

func (e *ResolveError) Error() string {
	if e.Reason == SpecInvalid {
		return fmt.Sprintf("resolve Target %s: %v", e.Target, e.Err)
	}
	return fmt.Sprintf("resolve Target %s: secret %s: %v", e.Target, e.Secret, e.Err)
}

// Unwrap returns the cause.
func (e *ResolveError) Unwrap() error {
	return e.Err
}

// ConfigFault reports whether the fault is in the Target or the content of its secret, so that only users can fix it.
func (e *ResolveError) ConfigFault() bool {
	return e.Reason == SpecInvalid || e.Reason == ContentInvalid
}

func failed(t *lsv1alpha1.Target, reason Reason, cause error) *ResolveError {
	return &ResolveError{Reason: reason, Target: client.ObjectKeyFromObject(t), Secret: t.Spec.SecretRef.Name, Err: cause}
}

// SelectorError lists the faults of target selectors. Its text is one line with all paths. The individual faults can be
// found with errors.As as *field.Error.
type SelectorError struct {
	// Faults has at least one item.
	Faults field.ErrorList
}

func (e *SelectorError) Error() string {
	return e.Faults.ToAggregate().Error()
}

// Unwrap returns the individual faults.
func (e *SelectorError) Unwrap() []error {
	out := make([]error, 0, len(e.Faults))
	for _, fault := range e.Faults {
		out = append(out, fault)
	}
	return out
}

// asError returns nil if there are no faults.
func asError(faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	return &SelectorError{Faults: faults}
}

// ConfigError is the error of a Target whose configuration cannot be used because of one of its fields. Use errors.As
// to find it. The fault is in the configuration or the Policy, so a retry without a change of one of them is useless.
type ConfigError struct {
	// Field is the path of the field, for example users[0].user.exec. It consists of indices and of names that this
	// package knows, and contains nothing else of the configuration.
	Field string
	// Reason describes the fault. It contains nothing of the configuration.
	Reason string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("target configuration: %s: %s", e.Field, e.Reason)
}

// ConfigFault returns true, because only the author of the Target, or the operator, can fix the fault.
func (e *ConfigError) ConfigFault() bool { return true }

func fault(path, reason string) *ConfigError {
	return &ConfigError{Field: path, Reason: reason}
}
