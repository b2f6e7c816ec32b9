// SPDX-License-Identifier: Apache-2.0

package upkeep

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

// LandscapeID identifies a Landscaper cluster, so that items of two of them can share a target. It returns the UID of
// the namespace kube-system, or an error if the namespace cannot be read.
func LandscapeID(ctx context.Context, ls client.Reader) (types.UID, error) {
	ns := &corev1.Namespace{}
	if err := ls.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", fmt.Errorf("identify the Landscaper cluster: %w", err)
	}
	return ns.UID, nil
}

// landscape is the identity of one cluster, which is read once.
type landscape struct {
	reader client.Reader
	config func() *rest.Config

	mu         sync.Mutex
	uid, alias types.UID
}

// id returns the LandscapeID of the cluster and the identity of its API server. Where the former must not be read, it
// returns only the latter.
func (l *landscape) id(ctx context.Context) (uid, alias types.UID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uid != "" {
		return l.uid, l.alias, nil
	}
	server, err := serverID(l.config())
	if err != nil {
		return "", "", err
	}
	uid, err = LandscapeID(ctx, l.reader)
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

// serverID identifies a cluster by the address of its API server and the authority that signs its certificate. It
// needs no right, and stays the same as long as the deployer has the same access.
func serverID(cfg *rest.Config) (types.UID, error) {
	authority := cfg.CAData
	if len(authority) == 0 && cfg.CAFile != "" {
		var err error
		if authority, err = os.ReadFile(cfg.CAFile); err != nil {
			return "", fmt.Errorf("identify the Landscaper cluster: %w", err)
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", cfg.Host+cfg.APIPath, strings.TrimSpace(string(authority))))
	return types.UID("server-" + hex.EncodeToString(sum[:16])), nil
}
