// SPDX-License-Identifier: Apache-2.0

package contract

// RecordError exports recordError for tests.
var RecordError = recordError
