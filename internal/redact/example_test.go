// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"fmt"

	"github.com/deployerkit/deployerkit/internal/redact"
)

func Example() {
	hide := redact.New(4, "s3cret&more")
	fmt.Println(hide.Redact(`denied: {"password": "s3cret\u0026more"} is too short`))
	// Output: denied: {"password": "***"} is too short
}
