// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"sync"

	"github.com/deployerkit/deployerkit/internal/deletion"
)

// namespaceReasons explains why namespaces that are being deleted still exist. It reads each of them at most once.
type namespaceReasons struct {
	mu    sync.Mutex
	texts map[string]string
}

// describe returns the text about a namespace that is being deleted. It reads the namespace, and leaves out the
// explanation if that fails.
func (n *namespaceReasons) describe(ctx context.Context, c cluster, name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if text, known := n.texts[name]; known {
		return text
	}
	text := "is being deleted"
	if live, err := c.read(ctx, Ref{APIVersion: "v1", Kind: "Namespace", Name: name}); err == nil && live != nil {
		text = deletion.Format(live)
	}
	if n.texts == nil {
		n.texts = map[string]string{}
	}
	n.texts[name] = text
	return text
}
