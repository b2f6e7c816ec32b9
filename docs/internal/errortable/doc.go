// SPDX-License-Identifier: Apache-2.0

// Package errortable finds the errors that the library writes into the status of a deploy item, for the table in
// docs/errors.md.
package errortable
