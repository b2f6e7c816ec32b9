// SPDX-License-Identifier: Apache-2.0

// Package licence is an example of docs/declarative.md. The deployer validates its configuration, asks a web service
// for the licence of a customer, and stores the licence in a Secret. It writes errors to the status of the item.
package licence
