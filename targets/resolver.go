// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/document"
	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/targets/internal/secretcache"
)

// DefaultSecretMaxAge is how long a Resolver uses a secret before it reads it again.
const DefaultSecretMaxAge = time.Minute

// Resolver resolves the content of Targets. Create one with NewResolver. It is safe for concurrent use.
type Resolver struct {
	reader  client.Reader
	clk     clock.PassiveClock
	maxAge  time.Duration
	secrets *secretcache.Cache
	used    *lru.Cache // maps the name of a Target to the name of its secret, for Forget
}

// NewResolver returns a Resolver that reads secrets with reader. The reader should read directly from the API server,
// like manager.GetAPIReader, because a reader with a cache would list and watch all secrets of the cluster. The
// argument maxAge is how long a secret is used before it is read again. Zero means DefaultSecretMaxAge. If maxAge is
// negative, each call of Resolve reads the secret.
func NewResolver(reader client.Reader, clk clock.PassiveClock, maxAge time.Duration) *Resolver {
	if maxAge == 0 {
		maxAge = DefaultSecretMaxAge
	}
	return &Resolver{reader: reader, clk: clk, maxAge: maxAge, secrets: secretcache.New(), used: lru.New(secretcache.MaxSecrets)}
}

// Resolve returns the Target with its content. If the Target has an inline configuration, the content is this
// configuration as text. If the Target refers to a secret with a key, the content is the raw value of this key. Without
// a key, the content is a JSON object with all values of the secret, each parsed as YAML. The secret is in the
// namespace of the Target. If there is neither a configuration nor a reference, the content is empty. The result
// contains t itself, not a copy. If t is nil because the item names no Target, Resolve returns nil and no error.
//
// Resolve keeps secrets with valid content in a cache until their maximum age, or until a call with the result of
// [WithNotBefore] requires a newer version. The cache contains at most 500 secrets
// with a total of 32 MiB. After an error, the next call reads the secret again. Errors are *ResolveError and never
// contain content of the secret.
func (r *Resolver) Resolve(ctx context.Context, t *lsv1alpha1.Target) (*lsv1alpha1.ResolvedTarget, error) {
	if t == nil {
		return nil, nil
	}
	resolved := lsv1alpha1.NewResolvedTarget(t)
	if t.Spec.SecretRef == nil {
		return resolved, nil
	}
	if fault := checkSpec(&t.Spec); fault != nil {
		return nil, newResolveError(t, ReasonSpecInvalid, fault)
	}
	name := types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.SecretRef.Name}
	data, err := r.readSecret(ctx, name)
	if notfound.IsProof(err) {
		return nil, newResolveError(t, ReasonSecretMissing, err)
	}
	if err != nil {
		return nil, newResolveError(t, ReasonSecretUnreadable, err)
	}
	r.used.Add(client.ObjectKeyFromObject(t), name)
	if resolved.Content, err = document.ReadSecret(data, t.Spec.SecretRef.Key); err != nil {
		r.secrets.Remove(name)
		return nil, newResolveError(t, ReasonContentInvalid, err)
	}
	return resolved, nil
}

// Forget makes the next Resolve of the Target read the secret of the Target again, for example after the target cluster
// rejected the credentials. It ignores unknown names.
func (r *Resolver) Forget(t types.NamespacedName) {
	if used, ok := r.used.Get(t); ok {
		r.used.Remove(t)
		if name, ok := used.(types.NamespacedName); ok {
			r.secrets.Remove(name)
		}
	}
}

// readValue reads the secret that ref names, and returns the value of the key in ref. The content of the Target t
// contains this reference. Errors are *ResolveError.
func (r *Resolver) readValue(ctx context.Context, t *lsv1alpha1.Target, ref *secretKey) ([]byte, error) {
	why := func(reason Reason, cause error) error {
		return &ResolveError{Reason: reason, Target: client.ObjectKeyFromObject(t), Secret: ref.Name, Err: cause}
	}
	data, err := r.readSecret(ctx, ref.NamespacedName)
	if notfound.IsProof(err) {
		return nil, why(ReasonSecretMissing, err)
	}
	if err != nil {
		return nil, why(ReasonSecretUnreadable, err)
	}
	r.used.Add(client.ObjectKeyFromObject(t), ref.NamespacedName)
	value, exists := data[ref.key]
	if !exists {
		r.secrets.Remove(ref.NamespacedName)
		return nil, why(ReasonContentInvalid, fmt.Errorf("key %q is missing", ref.key))
	}
	return value, nil
}

func (r *Resolver) readSecret(ctx context.Context, name types.NamespacedName) (map[string][]byte, error) {
	if known := r.secrets.Get(name); known != nil && r.clk.Since(known.At) < r.maxAge && !known.At.Before(getNotBefore(ctx)) {
		return known.Data, nil
	}
	now := r.clk.Now()
	secret := &corev1.Secret{}
	if err := r.reader.Get(ctx, name, secret); err != nil {
		r.secrets.Remove(name)
		return nil, err
	}
	r.secrets.Add(name, secret.Data, now)
	return secret.Data, nil
}

type notBeforeKey struct{}

// WithNotBefore returns a context with which a Resolver reads a secret again if it has read the secret before the given
// time. A pool that uses the Resolver does the same. Use it for a run that was requested at this time, and that must
// not see an older version of the secret.
func WithNotBefore(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, notBeforeKey{}, t)
}

// getNotBefore returns the time that was passed to WithNotBefore, or the zero time.
func getNotBefore(ctx context.Context) time.Time {
	t, _ := ctx.Value(notBeforeKey{}).(time.Time)
	return t
}

// checkSpec returns an error if the spec of a Target with a secretRef is invalid.
func checkSpec(spec *lsv1alpha1.TargetSpec) error {
	if hasConfig(spec.Configuration) {
		return errors.New("spec.config and spec.secretRef are both set, only one is allowed")
	}
	if spec.SecretRef.Name == "" {
		return errors.New("spec.secretRef.name is empty")
	}
	return nil
}

func hasConfig(config *lsv1alpha1.AnyJSON) bool {
	if config == nil {
		return false
	}
	text := bytes.TrimSpace(config.RawMessage)
	return len(text) > 0 && !bytes.Equal(text, []byte("null"))
}
