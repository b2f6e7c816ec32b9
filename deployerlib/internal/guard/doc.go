// SPDX-License-Identifier: Apache-2.0

// Package guard protects the status and the metadata of a deploy item from user code. Hooks and deployers cannot change
// fields that belong to the contract, and the fields that they may change are limited in size.
package guard
