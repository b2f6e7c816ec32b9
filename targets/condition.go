// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
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

// turn is a request as the health of its target sees it.
type turn struct {
	h   *health
	clk clock.PassiveClock
	id  uint64
}

// begin notes that a request is under way until pause.
func (h *health) begin(clk clock.PassiveClock) *turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests++
	t := &turn{h: h, clk: clk, id: h.requests}
	if h.underWay == nil {
		h.underWay = map[uint64]time.Time{}
	}
	h.underWay[t.id] = clk.Now()
	return t
}

// pause notes that the request is over, or waits for the deployer.
func (t *turn) pause() {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	delete(t.h.underWay, t.id)
}

// resume notes that the request waits for its target again.
func (t *turn) resume() {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	t.h.underWay[t.id] = t.clk.Now()
}

// complete notes that the response is here, before the request is over.
func (t *turn) complete() {
	t.pause()
	t.h.report(t.clk.Now(), nil)
}
