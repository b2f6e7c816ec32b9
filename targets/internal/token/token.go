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

// ErrAccepted is the error of a token that is also valid at the server that issued it.
var ErrAccepted = errors.New("the token could be used at the server that issued it")

// Options configures a Source.
type Options struct {
	// Account is the service account.
	Account types.NamespacedName
	// Audience is the audience of the tokens. If it is empty, they are for the server that issues them.
	Audience []string
	// Expiration is the requested lifetime of the tokens in seconds.
	Expiration int64
	// Review makes the source check each token at the server that issued it, and reject a token that the server
	// accepts.
	Review bool
}

// Source provides a valid token of a service account. It is safe for concurrent use.
type Source struct {
	c   client.Client // of the Landscaper cluster
	clk clock.PassiveClock
	o   Options

	mu      sync.Mutex
	turn    chan struct{} // contains an element while a token is created
	current string
	renew   time.Time // when to create a new one
	expires time.Time
}

// New returns a source that creates tokens with c.
func New(c client.Client, clk clock.PassiveClock, o Options) *Source {
	return &Source{c: c, clk: clk, o: o, turn: make(chan struct{}, 1)}
}

// Token returns a valid token. It creates a new one after four fifths of the token's lifetime. If that fails, it
// returns the old one until it expires.
func (s *Source) Token(ctx context.Context) (string, error) {
	if token, fresh := s.Known(); fresh {
		return token, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	old, fresh := s.Known()
	if fresh {
		return old, nil
	}
	token, err := s.create(ctx)
	if err != nil && old != "" {
		return old, nil
	}
	return token, err
}

// Known returns the token unless it has expired, and reports whether it need not be renewed yet.
func (s *Source) Known() (token string, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clk.Now()
	if s.current == "" || !now.Before(s.expires) {
		return "", false
	}
	return s.current, now.Before(s.renew)
}

// Forget makes the next call create a token, unless the current one is not the refused one.
func (s *Source) Forget(refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == refused {
		s.current = ""
	}
}

// Drop makes the next call create a token.
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

// mustBeForeign returns an error for a token that the Landscaper's own API server accepts, because the target could use
// it there. It first checks that the server accepts the token for its audience. This proves that a rejection without an
// audience is due to the audience, and not to a service account that the server does not know yet.
func (s *Source) mustBeForeign(ctx context.Context, token string) error {
	forTarget, err := s.accepted(ctx, token, s.o.Audience)
	if err != nil {
		return err
	}
	if !forTarget {
		return fmt.Errorf("review token of ServiceAccount %s: it is not valid yet", s.o.Account)
	}
	here, err := s.accepted(ctx, token, nil)
	if err != nil {
		return err
	}
	if here {
		return ErrAccepted
	}
	return nil
}

// accepted asks the Landscaper's API server whether it accepts a token. If audience is empty, it is the server's own.
func (s *Source) accepted(ctx context.Context, token string, audience []string) (bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audience}}
	if err := s.c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review token of ServiceAccount %s: %w", s.o.Account, err)
	}
	return review.Status.Authenticated, nil
}
