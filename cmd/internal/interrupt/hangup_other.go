// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package interrupt

import "os"

// hungUp returns false, because it is only implemented for Unix.
func hungUp(...*os.File) bool { return false }
