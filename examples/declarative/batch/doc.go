// SPDX-License-Identifier: Apache-2.0

// Package batch is an example of docs/declarative.md with a Finalizer: each item runs a Job, and a deleted item is
// removed only when its Job has ended.
package batch
