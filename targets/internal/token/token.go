// SPDX-License-Identifier: Apache-2.0

// Package token creates tokens of service accounts and renews them.
package token

import (
	"context"
	"errors"
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

// ErrAccepted is returned if a token for another server is also valid at the server that issued the token.
var ErrAccepted = errors.New("the token is also valid for the API server that issued it")

// Options configures a Source.
type Options struct {
	// Account is the service account.
	Account types.NamespacedName
	// Audience is the audience of the tokens. If it is empty, the tokens are valid at the server that issues them.
	Audience []string
	// Expiration is the requested lifetime of the tokens in seconds.
	Expiration int64
	// Review makes the source check each token at the server that issued it. If that server accepts the token for
	// itself, the source rejects the token.
	Review bool
}

// Source provides a valid token of a service account. It is safe for concurrent use.
type Source struct {
	c   client.Client // client of the Landscaper cluster
	clk clock.PassiveClock
	o   Options

	mu         sync.Mutex
	creating   chan struct{} // contains an element while a token is being created
	current    string
	renewTime  time.Time // the time at which a new token is created
	expiryTime time.Time
}

// New returns a source that creates tokens with c.
func New(c client.Client, clk clock.PassiveClock, o Options) *Source {
	return &Source{c: c, clk: clk, o: o, creating: make(chan struct{}, 1)}
}

// GetToken returns a valid token. After four fifths of the lifetime of the current token, it creates a new token. If
// this fails, GetToken returns the current token until that token expires.
func (s *Source) GetToken(ctx context.Context) (string, error) {
	if token, fresh := s.GetCurrent(); fresh {
		return token, nil
	}
	select {
	case s.creating <- struct{}{}:
		defer func() { <-s.creating }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	old, fresh := s.GetCurrent()
	if fresh {
		return old, nil
	}
	token, err := s.create(ctx)
	if err != nil && old != "" {
		return old, nil
	}
	return token, err
}

// GetCurrent returns the current token, or "" if there is none or it has expired. The second result reports whether the
// token is so new that it need not be renewed yet.
func (s *Source) GetCurrent() (token string, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clk.Now()
	if s.current == "" || !now.Before(s.expiryTime) {
		return "", false
	}
	return s.current, now.Before(s.renewTime)
}

// Forget discards a token that a server has refused, so that the next call of Token creates a new token. If the refused
// token is no longer the current token, Forget does nothing.
func (s *Source) Forget(refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == refused {
		s.current = ""
	}
}

// Drop discards the current token, so that the next call of Token creates a new token.
func (s *Source) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = ""
}

func (s *Source) create(ctx context.Context) (string, error) {
	now := s.clk.Now()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.o.Account.Namespace, Name: s.o.Account.Name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: s.o.Audience, ExpirationSeconds: &s.o.Expiration}}
	if err := s.c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("create token of ServiceAccount %s: %w", s.o.Account, err)
	}
	token, expires := request.Status.Token, request.Status.ExpirationTimestamp.Time
	if s.o.Review {
		if err := s.checkForeign(ctx, token); err != nil {
			return "", err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.expiryTime = token, expires
	s.renewTime = now.Add(expires.Sub(now) * 4 / 5)
	return token, nil
}

// checkForeign returns an error if the Landscaper's API server accepts the token for itself, because the target could
// then use the token there. It makes two reviews. The first checks that the API server accepts the token for the
// audience of the target. This shows that the API server already knows the service account. The second checks that the
// API server rejects the token for its own audience.
func (s *Source) checkForeign(ctx context.Context, token string) error {
	forTarget, err := s.isTokenValid(ctx, token, s.o.Audience)
	if err != nil {
		return err
	}
	if !forTarget {
		return fmt.Errorf("review token of ServiceAccount %s: it is not valid yet", s.o.Account)
	}
	here, err := s.isTokenValid(ctx, token, nil)
	if err != nil {
		return err
	}
	if here {
		return ErrAccepted
	}
	return nil
}

// isTokenValid asks the Landscaper's API server whether a token is valid for an audience. If audience is empty, it is
// the audience of that API server.
func (s *Source) isTokenValid(ctx context.Context, token string, audience []string) (bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audience}}
	if err := s.c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review token of ServiceAccount %s: %w", s.o.Account, err)
	}
	return review.Status.Authenticated, nil
}
