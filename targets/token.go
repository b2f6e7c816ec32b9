// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenSource keeps a token of a service account fresh. It is safe for concurrent use.
type tokenSource struct {
	c          client.Client // of the Landscaper cluster
	clk        clock.PassiveClock
	account    types.NamespacedName
	audience   []string
	expiration int64
	// review: show each token to the Landscaper, and refuse it if it is good there.
	review bool

	mu      sync.Mutex
	turn    chan struct{} // holds one item while somebody creates a token
	current string
	renew   time.Time // create a new one from here on
	expires time.Time
}

func newTokenSource(c client.Client, clk clock.PassiveClock, account types.NamespacedName) *tokenSource {
	return &tokenSource{c: c, clk: clk, account: account, turn: make(chan struct{}, 1)}
}

// token returns a token that is good for a while. A new one is created after four fifths of its life; if that
// fails, the old one serves until it expires.
func (s *tokenSource) token(ctx context.Context) (string, error) {
	if token, fresh := s.known(); fresh {
		return token, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	old, fresh := s.known()
	if fresh {
		return old, nil
	}
	token, err := s.create(ctx)
	if err != nil && old != "" {
		return old, nil
	}
	return token, err
}

// known returns the token unless it has expired, and whether that will do.
func (s *tokenSource) known() (token string, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clk.Now()
	if s.current == "" || !now.Before(s.expires) {
		return "", false
	}
	return s.current, now.Before(s.renew)
}

// forget makes the next call create a token, unless it has one that is not the refused one.
func (s *tokenSource) forget(refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == refused {
		s.current = ""
	}
}

// drop makes the next call create a token.
func (s *tokenSource) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = ""
}

func (s *tokenSource) create(ctx context.Context) (string, error) {
	now := s.clk.Now()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.account.Namespace, Name: s.account.Name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: s.audience, ExpirationSeconds: &s.expiration}}
	if err := s.c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("create token of ServiceAccount %s: %w", s.account, err)
	}
	token, expires := request.Status.Token, request.Status.ExpirationTimestamp.Time
	if s.review {
		if err := s.mustBeForeign(ctx, token); err != nil {
			return "", err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.expires = token, expires
	s.renew = now.Add(expires.Sub(now) * 4 / 5)
	return token, nil
}

// mustBeForeign refuses a token that the Landscaper's own API server accepts: the target could use it there. That the server
// accepts it for the audience that was asked for proves that its refusal without one is about the audience, and not
// about a service account that it does not know yet.
func (s *tokenSource) mustBeForeign(ctx context.Context, token string) error {
	forTarget, err := s.accepted(ctx, token, s.audience)
	if err != nil {
		return err
	}
	if !forTarget {
		return fmt.Errorf("review token of ServiceAccount %s: it is not valid yet", s.account)
	}
	here, err := s.accepted(ctx, token, nil)
	if err != nil {
		return err
	}
	if here {
		return fault("oidcConfig.audience", "names an audience of the Landscaper, so the token could be used there")
	}
	return nil
}

// accepted asks the Landscaper's API server; no audience stands for its own.
func (s *tokenSource) accepted(ctx context.Context, token string, audience []string) (bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audience}}
	if err := s.c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review token of ServiceAccount %s: %w", s.account, err)
	}
	return review.Status.Authenticated, nil
}
