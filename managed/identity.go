// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// uidCache stores the UID of a cluster, so that the UID is read only once. The channel also serves as a lock: a reader
// takes the only element out and puts it back. The element is nil until the UID has been read.
type uidCache chan *types.UID

// UID returns the UID of the kube-system namespace, which identifies the cluster. It reads the UID only once. The
// result is empty if the namespace does not exist or if reading it is forbidden. UID returns an error if the cluster
// does not answer.
func (c *Cluster) UID(ctx context.Context) (types.UID, error) { return c.uid(ctx, false) }

// uid is like UID. If `again` is true and the UID could not be read before, uid tries to read it again.
func (c *Cluster) uid(ctx context.Context, again bool) (types.UID, error) {
	var known *types.UID
	select {
	case known = <-c.identity:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { c.identity <- known }()
	if known != nil && (*known != "" || !again) {
		return *known, nil
	}
	uid, err := getTargetUID(ctx, c)
	if err != nil {
		return "", err
	}
	known = &uid
	return uid, nil
}

// getTargetUID returns the UID of a cluster. The UID is empty if it cannot be determined.
func getTargetUID(ctx context.Context, target client.Reader) (types.UID, error) {
	uid, err := getClusterUID(ctx, target)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("identify the target: %w", err)
	}
	return uid, nil
}
