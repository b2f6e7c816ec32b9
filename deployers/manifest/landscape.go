// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// landscape tells Landscaper clusters apart: by the UID of their namespace
// kube-system, read once.
type landscape struct {
	reader client.Reader

	mu  sync.Mutex
	uid types.UID
}

func (l *landscape) id(ctx context.Context) (types.UID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uid != "" {
		return l.uid, nil
	}
	ns := &corev1.Namespace{}
	if err := l.reader.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", fmt.Errorf("identify the Landscaper cluster: %w", err)
	}
	l.uid = ns.UID
	return l.uid, nil
}
