// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
)

func TestObservedBody(t *testing.T) {
	t.Run("an answer that ends because the caller gave up cannot be read [Ex28]", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		body := &observedBody{ReadCloser: http.NoBody, done: func() {}, cause: ctx.Err}
		if data, err := io.ReadAll(body); err != nil || len(data) != 0 {
			t.Errorf("before the caller gives up: %q, %v", data, err)
		}
		cancel()
		if _, err := io.ReadAll(body); !errors.Is(err, context.Canceled) {
			t.Errorf("after the caller has given up: %v, want %v", err, context.Canceled)
		}
	})
}
