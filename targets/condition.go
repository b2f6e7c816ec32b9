// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Health is how a target answers, judged by complete responses.
type Health string

const (
	// HealthUnproven means that the target has not completed a response yet.
	HealthUnproven Health = "Unproven"
	// HealthGood means that the target completes its responses.
	HealthGood Health = "Good"
	// HealthBad means that the target is down, did not complete the last response that ended, or has not completed a response
	// for a while although a request is under way.
	HealthBad Health = "Bad"
)

// slowAfter is how long a request may be under way, while no response is completed, until its target is unhealthy.
const slowAfter = 2 * time.Second

// Health returns how the target of a Target that was resolved before answers. Watches do not count. It asks nothing, and
// returns HealthUnproven for a Target without a client.
func (p *Pool) Health(target types.NamespacedName) Health {
	p.mu.Lock()
	known := p.ties[target]
	p.mu.Unlock()
	if known == nil {
		return HealthUnproven
	}
	return known.client.wire.health.state(p.o.Clock.Now())
}

// state is the health as others see it.
func (h *health) state(now time.Time) Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isDown || h.failures > 0 {
		return HealthBad
	}
	for _, since := range h.underWay {
		if since.Before(h.completed) {
			since = h.completed
		}
		if now.Sub(since) >= slowAfter {
			return HealthBad
		}
	}
	if !h.settled {
		return HealthUnproven
	}
	return HealthGood
}

// begin notes that a request is under way until end.
func (h *health) begin(now time.Time) (request uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.underWay == nil {
		h.underWay = map[uint64]time.Time{}
	}
	h.requests++
	h.underWay[h.requests] = now
	return h.requests
}

func (h *health) end(request uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.underWay, request)
}
