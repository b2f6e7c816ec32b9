// SPDX-License-Identifier: Apache-2.0

package systematic_test

import (
	"errors"
	"sync"

	"github.com/deployerkit/deployerkit/faultnet"
)

// registry simulates a system outside of the cluster. Handlers create accounts in it, as their side effects.
type registry struct {
	mu            sync.Mutex
	accounts      map[string]string
	made, removed int
}

// line is the connection of one process to the registry. The connection stops working when the process is killed.
type line struct {
	registry *registry
	network  *faultnet.Network
}

var errCut = errors.New("the registry cannot be reached")

// ensure creates or updates an account.
func (l line) ensure(name, value string) error {
	return l.do(func(r *registry) {
		if _, found := r.accounts[name]; !found {
			r.made++
		}
		r.accounts[name] = value
	})
}

// remove removes an account if it exists.
func (l line) remove(name string) error {
	return l.do(func(r *registry) {
		if _, found := r.accounts[name]; found {
			r.removed++
		}
		delete(r.accounts, name)
	})
}

func (l line) do(act func(*registry)) error {
	select {
	case <-l.network.Killed():
		return errCut
	default:
	}
	l.registry.mu.Lock()
	defer l.registry.mu.Unlock()
	act(l.registry)
	return nil
}

// getAccount returns the value of an account, and how often the account was created and removed.
func (r *registry) getAccount(name string) (value string, made, removed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accounts[name], r.made, r.removed
}
