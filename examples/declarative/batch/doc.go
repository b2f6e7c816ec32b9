// SPDX-License-Identifier: Apache-2.0

// Package batch is an example of docs/declarative.md with a Finalizer. Each item runs a Job. When an item is deleted,
// it is removed only after its Job has ended.
package batch
