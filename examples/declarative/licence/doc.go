// SPDX-License-Identifier: Apache-2.0

// Package licence is an example of docs/declarative.md that validates its configuration and asks a web service: the
// licence of a customer, put into a Secret. Errors are written to the item's status.
package licence
