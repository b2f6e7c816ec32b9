// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/deployerlib"
)

func TestOptionsValidate(t *testing.T) {
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("Options{}.Validate(): %v", err)
	}
	for _, strategy := range strategies {
		if err := (Options{Strategy: strategy}).Validate(); err != nil {
			t.Errorf("strategy %s: %v", strategy, err)
		}
	}
	bad := Options{Strategy: "replace", ExportTimeout: -1}
	err := bad.Validate()
	for _, want := range []string{`default strategy: is "replace"`, "export timeout: is -1ns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want all faults at once, %q among them, got %v", want, err)
		}
	}
	if err := (&deployer{options: bad}).UseRuntime(deployerlib.Runtime{}); err == nil || !strings.Contains(err.Error(), "replace") {
		t.Errorf("a deployer must not start with them, got %v", err)
	}
}
