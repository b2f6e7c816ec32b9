// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LandscapeID tells Landscaper clusters apart, so that items of two of them can
// share a target: it is the UID of the namespace kube-system.
// Errors: the namespace cannot be read.
func LandscapeID(ctx context.Context, ls client.Reader) (types.UID, error) {
	ns := &corev1.Namespace{}
	if err := ls.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", fmt.Errorf("identify the Landscaper cluster: %w", err)
	}
	return ns.UID, nil
}

// landscape is the LandscapeID of one cluster, read once.
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
	var err error
	l.uid, err = LandscapeID(ctx, l.reader)
	return l.uid, err
}
