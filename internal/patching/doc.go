// SPDX-License-Identifier: Apache-2.0

// Package patching is the engine behind package patch and behind the status writer of deployerlib. It compares JSON bodies,
// encodes the differences and sends them.
//
// Apply makes a Content of an object: merge changes and functions, retried after conflicts. Diff and Send work on two versions of
// one object that the caller holds, never write its spec, and leave conflicts to the caller. Both send through the same Sender,
// which falls back to updates where patches are forbidden.
package patching
