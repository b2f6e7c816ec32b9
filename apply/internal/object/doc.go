// SPDX-License-Identifier: Apache-2.0

// Package object contains the values that describe one object of a deploy item: the reference to the object, its entry
// in the inventory, and what watches, owners and events say about it. Package apply exports most of them under the same
// names. Package decide uses them to decide on the next request for the object.
package object
