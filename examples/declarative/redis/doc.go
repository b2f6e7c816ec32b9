// SPDX-License-Identifier: Apache-2.0

// Package redis is an example of docs/declarative.md with typed structs: a Deployment, a Service and a Secret whose
// password is created once. The item's status shows the state of the children.
package redis
