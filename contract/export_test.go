// SPDX-License-Identifier: Apache-2.0

package contract

// RecordError is recordError, for tests.
var RecordError = recordError
