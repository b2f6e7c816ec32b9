// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestLogEscapesControlCharacters(t *testing.T) {
	for format, option := range map[string]zap.Opts{"JSON": zap.JSONEncoder(), "console": zap.ConsoleEncoder()} {
		t.Run("control characters are escaped in "+format+" [F12]", func(t *testing.T) {
			var out bytes.Buffer
			log := zap.New(option, zap.WriteTo(NewWriter(&out)))
			log.Error(errors.New("a\u202eb"), "m\u2067", "key\u200e", "value\u061c")
			for _, r := range "\u202e\u2067\u200e\u061c" {
				if bytes.ContainsRune(out.Bytes(), r) {
					t.Errorf("%U is in the log: %q", r, out.String())
				}
			}
			if !bytes.Contains(out.Bytes(), []byte(`a\u202eb`)) {
				t.Errorf("the escape is missing: %q", out.String())
			}
			if format == "JSON" && !json.Valid(out.Bytes()) {
				t.Errorf("the line is not JSON any more: %q", out.String())
			}
		})
	}
}
