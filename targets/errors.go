// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reason says what kept a Target from being resolved.
type Reason string

const (
	// SecretMissing means that the referenced secret does not exist. It may come; secrets are not watched, so try
	// again after a while.
	SecretMissing Reason = "SecretMissing"
	// SecretUnreadable means that the API server did not answer, or refused. Try again after a while.
	SecretUnreadable Reason = "SecretUnreadable"
	// SpecInvalid means that the Target itself is wrong, until it is changed.
	SpecInvalid Reason = "SpecInvalid"
	// ContentInvalid means that the secret exists but lacks the key, or that a value is not YAML. It
	// stays so until the secret is changed, which triggers nothing.
	ContentInvalid Reason = "ContentInvalid"
)

// ResolveError says why a Target could not be resolved. Find it with errors.As. Its text names the
// Target, the secret and at most a key, never any content.
type ResolveError struct {
	Reason Reason
	// Target is the Target that was to be resolved.
	Target types.NamespacedName
	// Secret is the name of the referenced secret in the Target's namespace.
	Secret string
	// Err is the cause: the API server's answer, or what is wrong.
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

// ConfigFault reports whether the fault is in what users configured, the Target or the content of its
// secret, so that only they can repair it.
func (e *ResolveError) ConfigFault() bool {
	return e.Reason == SpecInvalid || e.Reason == ContentInvalid
}

func failed(t *lsv1alpha1.Target, reason Reason, cause error) *ResolveError {
	return &ResolveError{Reason: reason, Target: client.ObjectKeyFromObject(t), Secret: t.Spec.SecretRef.Name, Err: cause}
}

// SelectorError holds what is wrong with target selectors. Its text is one line with all paths; the
// single faults can also be found with errors.As as *field.Error.
type SelectorError struct {
	// Faults has at least one item.
	Faults field.ErrorList
}

func (e *SelectorError) Error() string {
	return e.Faults.ToAggregate().Error()
}

// Unwrap returns the single faults.
func (e *SelectorError) Unwrap() []error {
	out := make([]error, 0, len(e.Faults))
	for _, fault := range e.Faults {
		out = append(out, fault)
	}
	return out
}

// asError returns nil for no faults.
func asError(faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	return &SelectorError{Faults: faults}
}

// ConfigError says which field of a Target's configuration keeps it from being used. Find it with errors.As. It is
// a fault of the configuration, or of the Policy: trying again without changing one of them is of no use.
type ConfigError struct {
	// Field is the path of the field, for instance users[0].user.exec. Its parts are indices and names that this
	// package knows, never anything the configuration says.
	Field string
	// Reason is what is wrong with it, in words that contain nothing of the configuration.
	Reason string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("target configuration: %s: %s", e.Field, e.Reason)
}

// ConfigFault is always true: only who configured the Target, or the operator, can repair it.
func (e *ConfigError) ConfigFault() bool { return true }

func fault(path, reason string) *ConfigError {
	return &ConfigError{Field: path, Reason: reason}
}
