// SPDX-License-Identifier: Apache-2.0

// Package guard protects the status and the metadata of a deploy item from user code. Hooks and deployers cannot write
// what belongs to the contract, and what they write is limited in size.
package guard
