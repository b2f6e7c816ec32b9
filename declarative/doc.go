// SPDX-License-Identifier: Apache-2.0

// Package declarative makes a deployer of a function that returns the desired state.
package declarative
