// SPDX-License-Identifier: Apache-2.0

// Package redis is an example of docs/declarative.md that uses typed structs. For each item, it creates a Deployment, a
// Service and a Secret with a password. The password is created only once. The status of the item shows the state of
// the children.
package redis
