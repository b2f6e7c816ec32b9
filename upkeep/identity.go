// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/targets"
)

// identity is the UID of a cluster, which is read once. The channel contains the UID, or nil before it is read.
type identity chan *types.UID

func newIdentity() identity {
	i := make(identity, 1)
	i <- nil
	return i
}

// UID returns the UID of the namespace kube-system, which identifies a cluster. It is read once. It is empty if the
// namespace does not exist, or must not be read. UID returns an error if the cluster does not answer.
func (c *Cluster) UID(ctx context.Context) (types.UID, error) {
	var known *types.UID
	select {
	case known = <-c.identity:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { c.identity <- known }()
	if known != nil {
		return *known, nil
	}
	held, release := targets.Hold(ctx)
	defer release()
	namespace, err := c.metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(held, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case err == nil:
		known = &namespace.UID
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		known = new(types.UID)
	default:
		return "", fmt.Errorf("identify the target: %w", err)
	}
	return *known, nil
}
