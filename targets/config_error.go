// SPDX-License-Identifier: Apache-2.0

package targets

import "fmt"

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
