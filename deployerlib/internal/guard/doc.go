// SPDX-License-Identifier: Apache-2.0

// Package guard keeps the status and the metadata of a deploy item safe from user code: hooks and deployers cannot write
// what belongs to the contract, and what they write stays within limits.
package guard
