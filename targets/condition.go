// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Health is the health of a target. It depends on whether the target completes its responses.
type Health string

const (
	// HealthUnknown means that the target has not completed the responses to the first discovery yet.
	HealthUnknown Health = "Unknown"
	// HealthStalled means that a request has been in progress for 100 ms and no response was completed during that time.
	// After two seconds, the target counts as HealthBad.
	HealthStalled Health = "Stalled"
	// HealthGood means that the target completes its responses.
	HealthGood Health = "Good"
	// HealthBad means that the target is down, that the last request ended without a complete response, or that a request
	// has been in progress for a while and no response was completed during that time.
	HealthBad Health = "Bad"
)

// stalledAfter and slowAfter are how long a request may be in progress before its target counts as stalled and as
// unhealthy. The time starts again whenever the target completes the response to another request.
const stalledAfter, slowAfter = 100 * time.Millisecond, 2 * time.Second

// Health returns the health of the cluster that a Target refers to, without making a request. It does not consider
// watches. It returns HealthUnknown if Get has not been called for the Target.
func (p *Pool) Health(target types.NamespacedName) Health {
	p.mu.Lock()
	known := p.ties[target]
	p.mu.Unlock()
	if known == nil {
		return HealthUnknown
	}
	return known.client.wire.health.state(p.o.Clock.Now())
}

// state returns the health at the given time.
func (h *health) state(now time.Time) Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isDown || h.failures > 0 {
		return HealthBad
	}
	switch waited := h.waited(now); {
	case waited >= slowAfter:
		return HealthBad
	case waited >= stalledAfter:
		return HealthStalled
	case !h.settled:
		return HealthUnknown
	}
	return HealthGood
}

// waited returns how long a request has been in progress since the last complete response. The caller holds the lock.
func (h *health) waited(now time.Time) (longest time.Duration) {
	for _, since := range h.underWay {
		if since.Before(h.completed) {
			since = h.completed
		}
		longest = max(longest, now.Sub(since))
	}
	return longest
}

// turn records when one request waits for its target. health uses this to detect slow targets.
type turn struct {
	h   *health
	clk clock.PassiveClock
	id  uint64
}

// begin records that a request is in progress. The request counts as in progress until turn.pause is called.
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

// pause records that the request is not waiting for its target: it has ended, or it waits until the deployer has memory
// for the response.
func (t *turn) pause() {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	delete(t.h.underWay, t.id)
}

// resume records that the request waits for its target again.
func (t *turn) resume() {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	t.h.underWay[t.id] = t.clk.Now()
}

// complete records that the response has arrived completely. Call it before the request waits for memory of the
// deployer. That wait does not count as slowness of the target.
func (t *turn) complete() {
	t.pause()
	t.h.report(t.clk.Now(), nil)
}
