// SPDX-License-Identifier: Apache-2.0

// Package batch is an example of docs/declarative.md with a Finalizer: each item runs a Job, and an item that is deleted
// goes only when its Job has ended by itself.
package batch
