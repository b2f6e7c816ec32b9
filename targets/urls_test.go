// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"net/url"
	"strings"
	"testing"
)

func TestErrorOfPrivateHostNamesFlag(t *testing.T) {
	t.Run("the error names the flag that allows private hosts [F49]", func(t *testing.T) {
		server, err := url.Parse("https://127.0.0.1:6443")
		if err != nil {
			t.Fatal(err)
		}
		if err := checkHost("server", server, Policy{}); err == nil || !strings.Contains(err.Error(), "--allow-private-hosts") {
			t.Errorf("got %v", err)
		}
	})
}
