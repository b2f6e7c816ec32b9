// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// getClusterUID returns the UID of the kube-system namespace, which identifies a cluster. Each object in a target is
// marked with the UID of the Landscaper cluster, so that two Landscaper clusters can use the same target. getClusterUID
// returns an error if the namespace cannot be read.
func getClusterUID(ctx context.Context, ls client.Reader) (types.UID, error) {
	ns := &corev1.Namespace{}
	if err := ls.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", fmt.Errorf("read the identity of the cluster: %w", err)
	}
	return ns.UID, nil
}

// landscape determines the identity of the Landscaper cluster, and stores it.
type landscape struct {
	reader client.Reader
	config func() *rest.Config

	mu         sync.Mutex
	uid, alias types.UID
}

// getUIDs returns the UID of the Landscaper cluster's kube-system namespace and, as an alias, the result of
// newServerID. If reading the namespace is forbidden, getUIDs returns the result of newServerID as the UID, and no
// alias.
func (l *landscape) getUIDs(ctx context.Context) (uid, alias types.UID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uid != "" {
		return l.uid, l.alias, nil
	}
	server, err := newServerID(l.config())
	if err != nil {
		return "", "", err
	}
	uid, err = getClusterUID(ctx, l.reader)
	switch {
	case apierrors.IsForbidden(err):
		l.uid = server
	case err != nil:
		return "", "", err
	default:
		l.uid, l.alias = uid, server
	}
	return l.uid, l.alias, nil
}

// serverPrefix is the beginning of each result of newServerID.
const serverPrefix = "server-"

// newServerID returns an identity that is derived from the address of the API server and the certificate authority of
// the server. It needs no permissions. The identity changes if the deployer uses another address or certificate
// authority.
func newServerID(cfg *rest.Config) (types.UID, error) {
	authority := cfg.CAData
	if len(authority) == 0 && cfg.CAFile != "" {
		var err error
		if authority, err = os.ReadFile(cfg.CAFile); err != nil {
			return "", fmt.Errorf("identify the cluster: %w", err)
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", cfg.Host+cfg.APIPath, strings.TrimSpace(string(authority))))
	return types.UID(serverPrefix + hex.EncodeToString(sum[:16])), nil
}
